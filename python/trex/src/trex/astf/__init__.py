"""The stateful mode: programs of clients and servers, templates and profiles."""
