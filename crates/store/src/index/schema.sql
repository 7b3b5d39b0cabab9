CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    name TEXT,
    kind TEXT NOT NULL,
    method TEXT,
    -- As in run.json: of a run that died, this is still `running`.
    state TEXT NOT NULL,
    -- ProcessRecord in JSON.
    process TEXT NOT NULL,
    command TEXT NOT NULL,
    -- OwnerRecord in JSON.
    owner TEXT,
    -- List of names in JSON.
    interfaces TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    ended_unix_ns INTEGER,
    error TEXT,
    outcome TEXT,
    figure_name TEXT,
    figure_value REAL,
    figure_unit TEXT,
    -- Times and sizes of the files that the row was read from; empty if a file was damaged.
    fingerprint TEXT NOT NULL
);
CREATE INDEX runs_by_start ON runs (started_unix_ns);

-- A row for each offer and step of each trial.
CREATE TABLE trials (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    offer INTEGER NOT NULL,
    step INTEGER NOT NULL,
    test TEXT NOT NULL,
    traffic TEXT NOT NULL,
    frame_size INTEGER,
    load INTEGER,
    seconds REAL NOT NULL,
    offered INTEGER NOT NULL,
    received INTEGER,
    lost INTEGER,
    loss_ratio REAL,
    delay_p50_ns INTEGER,
    delay_p99_ns INTEGER,
    delay_max_ns INTEGER,
    PRIMARY KEY (run, number, offer, step)
) WITHOUT ROWID;
