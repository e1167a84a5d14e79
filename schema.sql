-- The schema of pawl in PostgreSQL 14 and newer, as all migrations together
-- make it. It is here to be read; `workerd migrate up` applies the migrations,
-- and a test compares the two. Loading this file into an empty database does
-- the same as migrating it.
--
-- Everything lies in a schema of its own; another name than "pawl" may be
-- chosen. There are no triggers, no foreign keys and no sequences. The role
-- that runs workflows needs no more than
--
--     GRANT USAGE ON SCHEMA pawl TO runner;
--     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO runner;
--
-- bucket deals the workflows of one schema into parts that a distributed
-- PostgreSQL may keep on different nodes: the hash of the workflow's id modulo
-- schema_info.buckets. Every statement of the hot path names one bucket.

CREATE SCHEMA pawl;

-- Which migrations were applied.
CREATE TABLE pawl.schema_migrations (
	version    integer     NOT NULL,
	name       text        NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
);

-- Where each workflow stands: one row, changed by its owner only. A branch of a
-- workflow is a row too: its id is the workflow's, chr(31) and the branch's
-- path. parent is the row that is to be told of the end.
--
-- Half of each page is left free (fillfactor 50) so that the next version of a
-- row finds room beside it and no index has to be told (a HOT update). Measured
-- on a saga of five steps: 30 leaves 79 % of the updates HOT at 3,100 B of WAL
-- a workflow, 50 leaves 60 % at 3,450 B, 70 leaves 47 % at 3,695 B. 50 is the
-- middle between write volume and the room that finished rows keep taking.
--
-- The planner is told early what the table holds: a table that was never
-- analysed looks small enough to be scanned.
CREATE TABLE pawl.workflow (
	bucket     smallint    NOT NULL,
	id         text        COLLATE "C" NOT NULL,
	definition text        COLLATE "C" NOT NULL,
	version    integer     NOT NULL,
	status     text        COLLATE "C" NOT NULL,
	state      text        COLLATE "C" NOT NULL,
	revision   bigint      NOT NULL,
	owner      uuid,
	parent     text        COLLATE "C",
	wake_at    timestamptz,
	awaits     text        COLLATE "C",
	step       text        COLLATE "C",
	grp        integer,
	attempt    integer,
	failures   integer,
	crashes    integer,
	error      text        COLLATE "C",
	pivoted    boolean     NOT NULL,
	input_hash bytea       NOT NULL,
	cursor     bytea,
	data       bytea       NOT NULL,
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	ended_at   timestamptz,
	queue      text        COLLATE "C",
	queue_key  text        COLLATE "C",
	priority   smallint,
	begun      boolean,
	CONSTRAINT workflow_pkey PRIMARY KEY (bucket, id)
) WITH (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.05,
	autovacuum_analyze_scale_factor = 0.02
);

-- What may be claimed, per definition, oldest first.
CREATE INDEX workflow_ready ON pawl.workflow (bucket, definition, version, wake_at)
	WHERE owner IS NULL AND wake_at IS NOT NULL AND queue IS NULL;

-- The lines of the queues: who has begun goes first, then by priority and age. A
-- level of priority is worth a minute, so an order that was right stays right. By
-- key too, for queues that limit each key. Whoever is in no queue is in neither.
CREATE INDEX workflow_line ON pawl.workflow (bucket, queue, begun, (timezone('UTC', wake_at) - priority * interval '1 minute'))
	WHERE queue IS NOT NULL AND owner IS NULL AND wake_at IS NOT NULL;

CREATE INDEX workflow_line_key ON pawl.workflow (bucket, queue, queue_key, begun, (timezone('UTC', wake_at) - priority * interval '1 minute'))
	WHERE queue IS NOT NULL AND owner IS NULL AND wake_at IS NOT NULL;

-- Who has a slot of a queue.
CREATE INDEX workflow_slot ON pawl.workflow (bucket, queue, queue_key)
	WHERE queue IS NOT NULL AND owner IS NOT NULL;

-- Whose it is: for the work of the dead, and for a worker's own inventory.
CREATE INDEX workflow_owner ON pawl.workflow (bucket, owner)
	WHERE owner IS NOT NULL;

-- What has ended, for what is kept only for a while after that. A row enters it
-- once, with the update that gives it up anyway.
CREATE INDEX workflow_ended ON pawl.workflow (bucket, definition, ended_at)
	WHERE ended_at IS NOT NULL;

-- The steps that ended. Rows are inserted, never changed. item tells apart the
-- records of a step that works on many items, from 1; 0 where there are none.
CREATE TABLE pawl.step (
	bucket      smallint    NOT NULL,
	workflow_id text        COLLATE "C" NOT NULL,
	step        text        COLLATE "C" NOT NULL,
	grp         integer     NOT NULL,
	item        integer     NOT NULL,
	status      text        COLLATE "C" NOT NULL,
	attempt     integer     NOT NULL,
	input       bytea,
	output      bytea,
	error       text        COLLATE "C",
	took_us     bigint      NOT NULL,
	revision    bigint      NOT NULL,
	ended_at    timestamptz NOT NULL,
	CONSTRAINT step_pkey PRIMARY KEY (bucket, workflow_id, step, grp, item)
);

-- What others want of a workflow. A consumed row stays: its id goes on
-- deduplicating.
CREATE TABLE pawl.inbox (
	bucket      smallint    NOT NULL,
	workflow_id text        COLLATE "C" NOT NULL,
	message_id  text        COLLATE "C" NOT NULL,
	kind        text        COLLATE "C" NOT NULL,
	name        text        COLLATE "C" NOT NULL,
	payload     bytea,
	sent_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	fresh       boolean     NOT NULL DEFAULT true,
	consumed_at timestamptz,
	answer      text        COLLATE "C",
	CONSTRAINT inbox_pkey PRIMARY KEY (bucket, workflow_id, message_id)
);

-- Both questions that are asked of an inbox: which workflows have fresh mail,
-- and what a workflow has not consumed. Neither pays for consumed mail.
CREATE INDEX inbox_open ON pawl.inbox (bucket, fresh, workflow_id)
	WHERE consumed_at IS NULL;

-- How far the body under way has come, by its own word, for the attempt after it.
CREATE TABLE pawl.progress (
	bucket      smallint    NOT NULL,
	workflow_id text        COLLATE "C" NOT NULL,
	key         text        COLLATE "C" NOT NULL,
	progress    bytea       NOT NULL,
	made_at     timestamptz NOT NULL,
	CONSTRAINT progress_pkey PRIMARY KEY (bucket, workflow_id)
) WITH (fillfactor = 50);

-- One row for each incarnation of a worker. dead_at is the truth about its
-- lease: set once, never taken back.
CREATE TABLE pawl.worker (
	id          uuid        NOT NULL,
	host        text        NOT NULL,
	pid         integer     NOT NULL,
	definitions text        NOT NULL,
	started_at  timestamptz NOT NULL,
	expires_at  timestamptz NOT NULL,
	dead_at     timestamptz,
	CONSTRAINT worker_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);

-- Who does what only one worker needs to do, such as cleaning up.
CREATE TABLE pawl.lease (
	name       text        COLLATE "C" NOT NULL,
	holder     uuid        NOT NULL,
	expires_at timestamptz NOT NULL,
	CONSTRAINT lease_pkey PRIMARY KEY (name)
);

-- The queues and their limits. How many run is counted from the workflows; only
-- the tokens of a rate are kept here.
CREATE TABLE pawl.queue (
	name        text             COLLATE "C" NOT NULL,
	concurrency integer,
	per_worker  integer,
	per_key     integer,
	rate        integer,
	period_us   bigint,
	burst       integer,
	tokens      double precision,
	filled_at   timestamptz,
	paused_at   timestamptz,
	note        text             COLLATE "C",
	CONSTRAINT queue_pkey PRIMARY KEY (name)
);

-- The graph of each version of a definition, by which it is known.
CREATE TABLE pawl.definition (
	name        text        COLLATE "C" NOT NULL,
	version     integer     NOT NULL,
	fingerprint text        COLLATE "C" NOT NULL,
	graph       bytea       NOT NULL,
	created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	CONSTRAINT definition_pkey PRIMARY KEY (name, version)
);

-- What starts workflows by the clock. spec is the engine's, running is a JSON
-- array of ids.
CREATE TABLE pawl.schedule (
	name       text        COLLATE "C" NOT NULL,
	definition text        COLLATE "C" NOT NULL,
	zone       text        COLLATE "C" NOT NULL,
	spec       bytea       NOT NULL,
	data       bytea       NOT NULL,
	revision   bigint      NOT NULL,
	next_at    timestamptz,
	due_at     timestamptz,
	queued_at  timestamptz,
	running    text        COLLATE "C" NOT NULL,
	paused_at  timestamptz,
	note       text        COLLATE "C",
	error      text        COLLATE "C",
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	CONSTRAINT schedule_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50);

CREATE INDEX schedule_due ON pawl.schedule (due_at)
	WHERE due_at IS NOT NULL;

-- What became of each slot of a schedule: a slot has one row, and so one run.
CREATE TABLE pawl.slot (
	schedule    text        COLLATE "C" NOT NULL,
	nominal     timestamptz NOT NULL,
	status      text        COLLATE "C" NOT NULL,
	origin      text        COLLATE "C" NOT NULL,
	workflow_id text        COLLATE "C",
	reason      text        COLLATE "C",
	decided_at  timestamptz NOT NULL,
	CONSTRAINT slot_pkey PRIMARY KEY (schedule, nominal)
);

-- One row: the oldest program that may use the schema, and into how many
-- buckets its workflows are dealt.
CREATE TABLE pawl.schema_info (
	only_row   boolean  NOT NULL DEFAULT true,
	min_binary integer  NOT NULL,
	buckets    smallint NOT NULL DEFAULT 1,
	CONSTRAINT schema_info_pkey PRIMARY KEY (only_row),
	CONSTRAINT schema_info_only_row CHECK (only_row),
	CONSTRAINT schema_info_buckets CHECK (buckets > 0)
);

INSERT INTO pawl.schema_info (min_binary) VALUES (1);
INSERT INTO pawl.schema_migrations (version, name) VALUES (1, 'first');
