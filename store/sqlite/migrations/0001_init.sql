-- Times are microseconds since 1970 in UTC, ids of workers are 16 bytes.

CREATE TABLE workflow (
    id         TEXT    NOT NULL PRIMARY KEY,
    definition TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    status     TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    owner      BLOB,
    parent     TEXT,
    wake_at    INTEGER,
    awaits     TEXT,
    step       TEXT,
    grp        INTEGER,
    attempt    INTEGER,
    failures   INTEGER,
    crashes    INTEGER,
    error      TEXT,
    pivoted    INTEGER NOT NULL,
    input_hash BLOB    NOT NULL,
    cursor     BLOB,
    data       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER,
    queue      TEXT,
    queue_key  TEXT,
    priority   INTEGER,
    begun      INTEGER
);

-- What may be claimed because its time has come.
CREATE INDEX workflow_ready ON workflow (definition, version, wake_at)
    WHERE owner IS NULL AND wake_at IS NOT NULL AND queue IS NULL;

-- The lines of the queues: who has begun goes first, then by priority and age. A
-- level of priority is worth a minute, so an order that was right stays right. By
-- key too, for queues that limit each key.
CREATE INDEX workflow_line ON workflow (queue, begun, wake_at - 60000000 * priority)
    WHERE queue IS NOT NULL AND owner IS NULL AND wake_at IS NOT NULL;

CREATE INDEX workflow_line_key ON workflow (queue, queue_key, begun, wake_at - 60000000 * priority)
    WHERE queue IS NOT NULL AND owner IS NULL AND wake_at IS NOT NULL;

-- Who has a slot of a queue.
CREATE INDEX workflow_slot ON workflow (queue, queue_key)
    WHERE queue IS NOT NULL AND owner IS NOT NULL;

-- What a worker owns: for the sweep and for reconciling.
CREATE INDEX workflow_owner ON workflow (owner)
    WHERE owner IS NOT NULL;

CREATE INDEX workflow_ended ON workflow (definition, ended_at)
    WHERE ended_at IS NOT NULL;

CREATE TABLE step (
    workflow_id TEXT    NOT NULL,
    step        TEXT    NOT NULL,
    grp         INTEGER NOT NULL,
    item        INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    input       BLOB,
    output      BLOB,
    error       TEXT,
    took_us     INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, step, grp, item)
);

CREATE TABLE inbox (
    workflow_id TEXT    NOT NULL,
    message_id  TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    payload     BLOB    NOT NULL,
    sent_at     INTEGER NOT NULL,
    fresh       INTEGER NOT NULL,
    consumed_at INTEGER,
    answer      TEXT,
    PRIMARY KEY (workflow_id, message_id)
);

-- Messages that no owner has seen yet.
CREATE INDEX inbox_fresh ON inbox (workflow_id) WHERE fresh;

-- How far the body under way has come, by its own word, for the attempt after it.
CREATE TABLE progress (
    workflow_id TEXT    NOT NULL PRIMARY KEY,
    key         TEXT    NOT NULL,
    progress    BLOB    NOT NULL,
    made_at     INTEGER NOT NULL
);

CREATE TABLE worker (
    id          BLOB    NOT NULL PRIMARY KEY,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    definitions TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    dead_at     INTEGER
);

CREATE TABLE lease (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     BLOB    NOT NULL,
    expires_at INTEGER NOT NULL
);

-- The queues and their limits. How many run is counted from the workflows; only
-- the tokens of a rate are kept here.
CREATE TABLE queue (
    name        TEXT    NOT NULL PRIMARY KEY,
    concurrency INTEGER,
    per_worker  INTEGER,
    per_key     INTEGER,
    rate        INTEGER,
    period_us   INTEGER,
    burst       INTEGER,
    tokens      REAL,
    filled_at   INTEGER,
    paused_at   INTEGER,
    note        TEXT
);

CREATE TABLE definition (
    name        TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL,
    graph       BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (name, version)
);

-- What starts workflows by the clock. spec is the engine's, running is a JSON
-- array of ids.
CREATE TABLE schedule (
    name       TEXT    NOT NULL PRIMARY KEY,
    definition TEXT    NOT NULL,
    zone       TEXT    NOT NULL,
    spec       BLOB    NOT NULL,
    data       BLOB    NOT NULL,
    revision   INTEGER NOT NULL,
    next_at    INTEGER,
    due_at     INTEGER,
    queued_at  INTEGER,
    running    TEXT    NOT NULL,
    paused_at  INTEGER,
    note       TEXT,
    error      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE INDEX schedule_due ON schedule (due_at) WHERE due_at IS NOT NULL;

-- What became of each slot of a schedule: a slot has one row, and so one run.
CREATE TABLE slot (
    schedule    TEXT    NOT NULL,
    nominal     INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    workflow_id TEXT,
    reason      TEXT,
    decided_at  INTEGER NOT NULL,
    PRIMARY KEY (schedule, nominal)
);

-- min_binary is the lowest generation of a program that may use the schema.
CREATE TABLE schema_info (
    only_row   INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    min_binary INTEGER NOT NULL
);

INSERT INTO schema_info (only_row, min_binary) VALUES (1, 1);
