// Package daemon turns a program that registers workflow definitions into a
// complete worker with a command line:
//
//	func main() {
//		daemon.Main(func(e *engine.Engine) error {
//			_, err := engine.Register(e, shop.Workflow())
//			return err
//		})
//	}
//
// [Main] exits the process; [Run] is the same without, for tests and for
// programs that have more to do. The commands below are those of cmd/workerd;
// in another program its own name takes the place of workerd.
//
// # Commands
//
//	workerd run                              work until told to stop
//	workerd migrate up                       create the schema or bring it up to date
//	workerd migrate status                   list the migrations and when each was applied
//	workerd workflow start DEFINITION ID     start a workflow, or find it (--input, --wait, --queue, --queue-key, --priority, --delay)
//	workerd workflow list                    list workflows by id (--definition, --status, --limit, --after)
//	workerd workflow show ID                 show a workflow and its steps (--follow, --payload)
//	workerd workflow steps ID                list its steps (--payload)
//	workerd workflow why ID                  say in one sentence why it is not moving
//	workerd workflow signal ID NAME          send it a signal (--input, --message-id)
//	workerd workflow cancel ID               ask for its rollback (--reason, --message-id)
//	workerd workflow retry ID                try once more what it is HELD for (--new-intent)
//	workerd workflow resolve ID              say what became of a call (--applied RESULT, --not-applied)
//	workerd workflow skip ID                 leave out the undo that it is HELD for
//	workerd workflow force ID                take the undo that it is HELD for as done
//	workerd workflow pause ID                hold it where it stands
//	workerd workflow resume ID               end its pause
//	workerd workflow terminate ID            end it at once, undoing nothing (--force)
//	workerd workflow delete ID               delete what an ended one holds; its id stays taken (--force)
//	workerd workflow erase ID                the same, for the sake of whom it is about (--force)
//	workerd workflow fork ID NEW-ID          copy it, to go on from one of its steps (--from-step, --input)
//	workerd workflow audit ID                list what was ever asked of it, and by whom
//	workerd schedule create DEFINITION NAME  start a workflow at each slot (--cron or --every, --zone, --input, …)
//	workerd schedule list                    list schedules by name, with next and last slot (--limit, --after)
//	workerd schedule show NAME               show a schedule, its next and its last slots (--slots, --payload)
//	workerd schedule pause NAME              skip its slots until it is resumed (--reason)
//	workerd schedule resume NAME             end its pause
//	workerd schedule trigger NAME            start a workflow of it now
//	workerd schedule backfill NAME           start those of past slots that have not fired (--from, --to)
//	workerd schedule delete NAME             remove it and its ledger
//	workerd queue list                       list queues, their limits, who runs and who waits
//	workerd queue set NAME                   create a queue or change its limits (--concurrency, --per-worker, --per-key, --rate, --period, --burst)
//	workerd queue pause NAME                 let nothing of it begin or go on (--reason)
//	workerd queue resume NAME                end its pause
//	workerd retention check                  how long each definition keeps what has ended
//	workerd retention plan                   what a retention costs in storage (--rate, --window, --bytes)
//	workerd worker list                      list the workers
//	workerd definition list                  list the definitions that were ever registered
//	workerd definition show NAME VERSION     draw one, whether its code is here or gone
//	workerd version-check                    say whether all open workflows could go on with this program (--diff)
//	workerd version                          print the version
//	workerd completion SHELL                 print a completion script
//
// The verbs from retry to delete share --reason and --actor, which are kept with
// the workflow; --request-id, so that an order which is repeated is carried out
// once; --branch, for one of several branches; and --dry-run.
//
// In place of an ID they, and cancel, take -q QUERY, such as "type:order
// status:held since:2h state:paying", all of whose terms must hold. They print how
// many workflows that selects, and with --yes start a workflow that gives each of
// them the order, at most --limit: a worker carries it out, and its data tells how
// far it is.
//
// Every command but run is a client: it reads and writes the database and runs
// no step. A client does not create a SQLite file, except by migrate up,
// workflow start, schedule create and queue set: a mistyped path is an error, not an empty list.
//
// # Settings
//
// A flag beats the environment.
//
//	--database-url   sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE;
//	                 PAWL_DATABASE_URL, else DATABASE_URL
//	--schema         the PostgreSQL schema; pawl by default
//	-o, --output     text (for people), json, or jsonl (one object a line)
//	--time-format    relative or iso, in text; JSON holds RFC 3339 times in UTC
//	--color          auto, always or never; auto obeys NO_COLOR and is off unless
//	                 the output is a terminal
//	--log-level      debug, info, warn or error; logs go to the standard error
//	--log-format     text or json
//	--timeout        how long a client command may take, 0 for no limit: 30 s,
//	                 and no limit with --wait and --follow
//	--input          a JSON value, @FILE, or - for the standard input
//
// Payloads are decoded by the Codec of the [engine.Config] that [WithConfig] gives,
// in every command. A program without it, or without the key, shows which codec and
// which key have written a payload in the payload's place, and gives the bytes that
// are stored with -o json. It can list, show, terminate and delete; what must read
// the payload fails.
//
// Beside them run has --concurrency, --lease, --poll and --drain-timeout, with
// the meaning and the defaults of [engine.Config].
//
// # Exit codes
//
//	0    done
//	1    failed; with --wait also: the workflow ended other than COMPLETED, or is HELD
//	2    refused as it stands: flags, arguments, ids, input, database URL, definition
//	3    there is no such workflow, schedule or queue
//	4    in conflict with what exists: another input or definition, expired, ended,
//	     past the point of no return, a verb that makes no sense as the workflow
//	     stands, a graph that changed without a new version
//	5    timed out
//	130  left at once after a second SIGINT
//	143  left at once after a second SIGTERM
//
// An error is one line on the standard error that says what to do next. The
// password of a database URL is never printed.
//
// # Signals
//
// At the first SIGTERM or SIGINT run drains: it claims nothing more, lets
// running steps go on for --drain-timeout, cancels them, gives back what it
// owns so that others go on at once, and exits 0. Once a second the log says
// what it waits for. A second signal leaves at once; the work is then taken
// over when the lease ends.
//
// # JSON
//
// The keys are stable, and all of them are always there: what is not known or
// does not apply is null. Only "data", "input" and "output" are absent without
// --payload, since payloads are not shown unless asked for. They are the JSON
// that is stored, numbers as they were written; bytes that are not JSON come as
// "data_base64" and so on.
//
// A workflow (show, start --wait, and list):
//
//	id, definition, version     text, text, number
//	status                      PENDING, WAITING, COMPENSATING, COMPLETED, COMPENSATED,
//	                            FAILED, TERMINATED, HELD or EXPIRED
//	state                       where it stands in the graph
//	cause, reason               why it is or was rolled back; the last failure, or why it is HELD
//	step                        the one under way: name, group, attempt, failures, crashes, key
//	awaits                      the signal it waits for
//	queue                       where it stands in line, if it does: name, key, priority
//	wake_at                     when it wakes by itself
//	owner                       the id of its worker
//	revision                    counts its transitions, claims and releases
//	created_at, updated_at, ended_at
//	data                        with --payload; not in lists
//
// A step (steps, show):
//
//	step, group, status         text, number, DONE, FAILED or UNKNOWN
//	attempt                     how many attempts were begun
//	took_seconds                the last attempt
//	key                         the idempotency key of all of them
//	error, revision, ended_at
//	input, output               with --payload
//
// A schedule (create, show, and list):
//
//	name, definition            text
//	description                 in words, when its slots are
//	cron, every_seconds, zone, gap, repeat
//	overlap, catch_up, catch_up_limit, grace_seconds, jitter_seconds
//	state                       active, paused, failing, or over: there are no more slots
//	next                        the next five slots
//	due_at                      when a worker looks at it
//	last                        the latest row of its ledger, a slot
//	queued_at, running          the slot that waits, and the workflows that may not have ended
//	paused_at, note, error      since when and why it is paused; why it is failing
//	revision, created_at, updated_at
//	data                        with --payload; not in lists
//
// A slot: nominal_at, status (FIRED, SKIPPED, MISSED or QUEUED), origin (calendar,
// trigger or backfill), workflow_id, reason, decided_at.
//
// A worker: id, host, pid, definitions (name, version), state (alive, expired
// or dead), started_at, lease_ends_at, dead_at.
//
// The commands print, with -o json:
//
//	workflow start    id, created, status, workflow (null unless --wait)
//	workflow list     workflows, next (the --after of the next page, or null)
//	workflow show     workflow, steps, why
//	workflow steps    steps
//	workflow why      id, why
//	workflow signal   id, signal, accepted
//	workflow cancel   id, accepted
//	workflow retry … delete  id, verb, before, after, note, repeated, dry_run
//	  with -q         query, verb, count, first, bulk (the id of the workflow that does it, or null)
//	workflow audit    id, audit: request_id, branch, what, actor, reason, sent_at,
//	                  taken_at, before, after, answer
//	schedule create   created, schedule
//	schedule list     schedules, next (the --after of the next page, or null)
//	schedule show     schedule, slots
//	schedule pause    name, paused
//	schedule resume   name, resumed
//	schedule trigger  name, workflow_id
//	schedule backfill name, workflow_ids
//	schedule delete   name, deleted
//	queue list        queues: name, running, waiting, later, oldest_at, concurrency, per_worker, per_key, rate, period_seconds, burst, paused_at, note
//	queue set, pause, resume  one of them
//	workflow fork     id, new_id, state, keeps, repeats, repeated, dry_run
//	retention check   retentions: definition, version, keep_seconds, tombstone_seconds, horizon_seconds
//	retention plan    records, bytes
//	worker list       workers
//	definition list   definitions: name, version
//	definition show   definition, version, mermaid
//	version-check     stranded: definition, version, state, step, count, example, why;
//	                  with --diff definitions: definition, version, from_version, verdict, changes
//	migrate up        applied: version, name, applied_at
//	migrate status    migrations: version, name, applied_at; pending (a number)
//	version           name, version, revision, go, platform
//	run               name, version, store, schema, host, pid, concurrency, definitions,
//	                  lease_seconds, poll_seconds, drain_timeout_seconds
//
// With -o jsonl each workflow, step, schedule, queue, worker or migration of a list is a line;
// show --follow prints a line whenever the workflow has changed, with -o json
// too.
package daemon
