"""Pages over TCP and names over UDP at the same port. The number of pages is a tunable."""

import argparse

from trex.astf.api import *

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
QUERY = b"\x12\x34 who?"


class Pages:
    def get_profile(self, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--pages", type=int, default=3)
        parser.add_argument("--page-size", type=int, default=32000)
        arguments = parser.parse_args(tunables)
        addresses = ASTFIPGen(
            dist_client=ASTFIPGenDist(ip_range=["16.0.0.1", "16.0.0.200"]),
            dist_server=ASTFIPGenDist(ip_range=["48.0.0.1", "48.0.0.10"], distribution="rand"),
            glob=ASTFIPGenGlobal(ip_offset="2.0.0.0", ip_offset_server="3.0.0.0"),
        )
        info = ASTFGlobalInfo()
        info.tcp.mss = 1400
        info.ipv6.src_msb = "2001:db8::"
        templates = [self.pages(arguments, addresses), self.names(addresses)]
        return ASTFProfile(addresses, default_c_glob_info=info, templates=templates)

    def pages(self, arguments, addresses):
        client = ASTFProgram()
        server = ASTFProgram()
        client.set_var("left", arguments.pages)
        client.set_label("next")
        client.send(REQUEST)
        client.recv(arguments.page_size, clear=True)
        client.jmp_nz("left", "next")
        server.set_var("left", arguments.pages)
        server.set_label("next")
        server.recv(len(REQUEST), clear=True)
        server.send("", size=arguments.page_size, fill="*")
        server.jmp_nz("left", "next")
        return ASTFTemplate(
            ASTFTCPClientTemplate(addresses, program=client, cps=2.5, limit=10, cont=True),
            ASTFTCPServerTemplate(program=server),
            tg_name="pages",
        )

    def names(self, addresses):
        client = ASTFProgram(stream=False)
        server = ASTFProgram(stream=False)
        client.send_msg(QUERY)
        client.recv_msg(1)
        server.recv_msg(1)
        server.send_msg(QUERY)
        info = ASTFGlobalInfoPerTemplate()
        info.ip.tos = 8
        return ASTFTemplate(
            ASTFTCPClientTemplate(addresses, program=client, glob_info=info),
            ASTFTCPServerTemplate(program=server),
        )


def register():
    return Pages()
