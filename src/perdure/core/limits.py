"""Every bound of the system, each with its reason (P7); what is one subject's alone has a file of its own beside this.

Units are in the names. What a user may set is a field of an agent's settings whose default is one of these.
"""

KIB = 1024
"""Bytes; for the bounds below."""

# --- payloads ---------------------------------------------------------------------------------------------------
BLOB_BYTES_MIN = 64 * KIB
"""Above this a content travels as a blob's digest. Temporal warns at 256 KiB and refuses 2 MiB a payload."""

BLOB_BYTES_MAX = 32 * KIB * KIB
"""One blob. A store row larger than this slows every backup; whoever needs more stores it elsewhere, by URL."""

TOOL_TEXT_BYTES_MAX = 48 * KIB
"""What a model is shown of one tool result: below BLOB_BYTES_MIN with room for the JSON around it."""

ARTIFACT_BYTES_MAX = 64 * KIB
"""What a tool hands over stands in its result's row, which every later turn reads with the transcript (P7)."""

INLINE_ARGUMENTS_BYTES_MAX = 2 * KIB
"""Arguments of a call up to this size are repeated in the event log; larger ones are read from the transcript."""

PROBLEM_BYTES_MAX = 2 * KIB
"""An error text given to a model or written to an event: enough for a reason, too little to flood a context."""

NATIVE_BYTES_MAX = 256 * KIB
"""A provider's own form of a reply, kept beside it for later turns; a larger one is dropped, with its thinking."""

ANSWER_BYTES_MAX = 32 * KIB
"""A person's answer to a help request; it stands in the event that records it."""

QUESTION_BYTES_MAX = 8 * KIB
"""What a person is asked at once; it is held in the state until it is answered. The whole stands in the transcript."""

ONCE_RESULT_BYTES_MAX = 16 * KIB
"""A result that a guarded call records beside its effect: a receipt. More belongs in the effect's own rows."""

SHOWN_CALL_BYTES_MAX = 1 * KIB
"""A call as a person is asked about it; it is held in the state while the call is open."""

MESSAGE_INLINE_BYTES_MAX = 256 * KIB
"""Texts and data of one message that travel in it; what comes beyond goes by blob, however small (P7)."""

MESSAGE_PARTS_MAX = 64
"""Parts of one message."""

MESSAGE_ID_CHARS_MAX = 128
"""A client's message id is part of a primary key."""

REFERENCES_PER_MESSAGE_MAX = 8
REFERENCE_BYTES_MAX = 16 * KIB
"""Tasks that a message refers to, and what is told of the answer of each: the model reads it in every turn."""

REFERENCE_EVENTS_PER_READ = 50
"""Events of a referenced task read at once, from its end, until its answer is found; it is among the last few."""

REFERENCES_KEPT_MAX = 200
"""Referenced tasks whose outcome a worker remembers, REFERENCE_BYTES_MAX each: an outcome never changes."""

# --- queues -----------------------------------------------------------------------------------------------------
INBOX_PENDING_MAX = 256
"""Messages waiting in one task. A sender who is further ahead than this is in a loop."""

MESSAGE_IDS_REMEMBERED = 256
"""Message ids a workflow carries to answer a resend without the store; the store knows all of them."""

SNAPSHOT_IDS_MAX = 0
"""Message ids that a task's snapshot repeats. The store has all of them in a table of its own, and a snapshot, which is
written at the end of each run, must not grow with each message (P7)."""

CALLS_PER_TURN_MAX = 32
"""Tool calls that one model reply may ask for; further ones get an error result."""

KEYS_PER_CALL_MAX = 20
"""Keys of one call, each closed by the tool's check after a death: more deaths in one call are no accident."""

CLOSED_KEYS_WATCHED_MAX = 20
"""Closed keys of a task, the latest, under which a late result is still looked for: a closed key should bring none."""

DOUBTS_MAX = 100
"""Unknown outcomes a task remembers. One that has more is in no state to go on without a person."""

# --- retries ----------------------------------------------------------------------------------------------------
MODEL_ATTEMPTS_MAX = 5
FALLBACKS_MAX = 4
"""Attempts at a turn's model that may fail by the provider's fault: with the backoff below about a minute. And further
models that it may ask, with as many each: a turn that finds all of them down ends in minutes."""

TOOL_ATTEMPTS_MAX = 3
"""Attempts of one call of a tool that is safe to repeat: the model can try something else sooner than a person."""

BACKOFF_FIRST_MS = 500
BACKOFF_FACTOR = 2.0
BACKOFF_MAX_MS = 60_000
"""Waiting longer than a minute between attempts helps no provider and looks dead to a customer."""

DEATH_BACKOFF_MAX_MS = 200
"""After a second proven death in a row: long enough not to spin. What bounds deaths is their limit (R12)."""

RETRY_AFTER_MAX_MS = 15 * 60_000
"""A provider's Retry-After is a floor up to this; one that asks for more has said no, and the attempt gives up."""

CRASHES_MAX = 3
"""R12: proven deaths of workers that ran this task alone, in a row, before it parks."""

SHARED_DEATHS_BEFORE_QUARANTINE = 2
"""R12: deaths in company, in a row, after which a task's attempts run alone."""

# --- time -------------------------------------------------------------------------------------------------------
TOOL_TIMEOUT_S = 300.0
MODEL_TIMEOUT_S = 600.0
"""Start-to-close defaults. A reasoning model may think for minutes; a tool that does should be told so."""

HEARTBEAT_EVERY_S = 10.0
HEARTBEAT_TIMEOUT_S = 30.0
"""Three missed beats. Only where no supervisor sees the death itself."""

WORKFLOW_TASK_TIMEOUT_S = 2.0
"""A worker killed inside a workflow task is waited for this long (Temporal's default of 10 s cost 7.4 s)."""

STICKY_TIMEOUT_S = 1.0
"""How long a workflow task waits for the worker that has the workflow cached; Temporal's default of 10 s is what a
death costs without a supervisor, and a replay elsewhere costs milliseconds."""

STORE_WRITE_TIMEOUT_S = 10.0
"""A write to the store that takes longer is begun again; every write is safe to repeat."""

STORE_ASKED_AGAIN_S = 2.0
"""After a write that failed the next one comes no sooner, whoever asks: each stands in the task's history."""

RECORD_WITHIN_S = 10.0
RECORD_PAUSE_S = 0.5
"""A result that the store does not take is offered again for so long: a restart of a database takes about five seconds.
What is known then need not become an outcome that nobody knows; a longer outage leaves the call in doubt."""

STORE_WRITE_HEARTBEAT_TIMEOUT_S = 3.0
"""A worker killed inside a write is waited for this long; one that was only slow writes the same again."""

RETURN_WITHIN_S = 3.0
"""A workflow whose task has ended returns within milliseconds; a command that ends its workers waits for it so long."""

ACKNOWLEDGE_WITHIN_S = 10.0
"""A handler whose write takes longer says so (retry later); what it admitted stays admitted."""

ROLLING_S = 3.0
"""How long somebody who asks waits for a task to continue in a new history, which takes milliseconds unless the store
fails."""

SETTLE_S = 5.0
"""Wait before a tool's check: recovery can be faster than a request that is still on its way."""

STOP_GRACE_S = 10.0
"""How long a cancelled call may take to end before the run ends without it."""

DRAIN_S = 25.0
"""How long a worker that was asked to end lets begun calls finish: under the 30 s that most supervisors allow."""

HEARTBEAT_THROTTLE_S = 1.0
"""On a server that is not ours a stop rides on heartbeats: calls beat so often there, and the SDK, which would hold
heartbeats back for up to 80 % of their timeout, lets them pass. A call that takes less has none."""

# --- slots of one worker process --------------------------------------------------------------------------------
WORKFLOW_TASKS_AT_ONCE_MAX = 8
"""After a mass restart every task replays; more at once than this do not fit in half of a workflow task's 2 s."""

CALLS_AT_ONCE_MAX = 100
"""Model and tool calls; they mostly wait for others."""

WRITES_AT_ONCE_MAX = 16
"""Store writes, in slots of their own; SQLite takes one at a time anyway."""

REPLIES_KEPT_MAX = 200
"""Replies whose calls a worker keeps in memory: twice the calls that it runs at once."""

CACHED_WORKFLOWS_MAX = 500
"""Workflows kept in memory between their tasks; an evicted one is replayed."""

QUARANTINED_AT_ONCE_MAX = 1
"""Attempts at once in a quarantine worker (R12): alone, so that a death is proof against the one that ran."""

# --- budgets ----------------------------------------------------------------------------------------------------
RUN_TURNS_MAX = 100
"""Turns to one answer. Real conversations of support agents need under 30; more is usually a loop."""

# --- history ----------------------------------------------------------------------------------------------------
HISTORY_EVENTS_MAX = 2_000
"""Continue as new after this many events: about 160 turns. A replay must fit in half a workflow task's 2 s."""

UPDATES_TAKEN_MAX = 1_800
"""Of the two thousand updates that Temporal takes in one history; the rest are for stops and cancels."""

MESSAGES_PER_WRITE_BYTES_MAX = 384 * KIB
"""Messages of one write: with ten updates of BATCH_BYTES_MAX at once it stays below the 4 MiB of an answer to Temporal,
in which what was accepted stands once more; over that the workflow is ended."""

BATCH_BYTES_MAX = 320 * KIB
"""Operations of one update, unless one message alone is larger: a message with its envelope fits."""

HISTORY_BYTES_MAX = 20 * KIB * KIB
"""Above this a task takes in no message until it has continued as new; Temporal ends a workflow at 50 MiB, and what a
batch brings (below 2 MiB) is in the history a second time when it is stored."""

HISTORY_EVENTS_TAKEN_MAX = 4_000
"""Events of one history above which a task takes in nothing but what leads out of its present step, until it has
continued as new. A single operation is eleven events (some fifteen while the store fails), and a replay of this many
takes 0.7 s of a quiet processor: a worker's death must not leave a task that nobody can replay within a workflow task's
2 s."""

EVENTS_PER_WRITE_MAX = 200
"""Rows in one batch: at under 400 bytes each they stay well below Temporal's payload warning."""

EVENTS_PER_PAGE_MAX = 500
"""Rows in one read of the log."""

# --- the store --------------------------------------------------------------------------------------------------
STORE_READERS_MAX = 4
"""Reading connections of one process to a SQLite store; reads are short, and more threads only share the same GIL."""

STORE_CONNECTIONS_MAX = 8
"""Connections of one process to a PostgreSQL store, and one more for its channel: ten processes stay below the
server's default of 100."""

TRANSCRIPT_CACHE_BYTES_MAX = 16 * KIB * KIB
"""Bodies whose parsed entries a process keeps, so that a turn reads and parses only what is new in its transcript."""

TAIL_POLL_FIRST_MS = 20
TAIL_POLL_MAX_MS = 100
"""How often a process asks its store for changes by others: soon after a change, slower while nothing happens."""

MIGRATION_PAUSE_S = 0.01
"""Between two looks whether another store of this process has been prepared, which takes part of a second."""

# --- beside the log -----------------------------------------------------------------------------------------------
DELTA_EVERY_MS = 40
"""How often a worker tells what its models have said meanwhile: fluent to read, and one datagram for all its tasks."""

DELTA_CHARS_MAX = 1_000
DATAGRAM_BYTES_MAX = 7_000
"""What one datagram carries: PostgreSQL notifies with under 8,000 bytes, and a character takes up to six in JSON."""

DRAFT_CHARS_MAX = 64 * KIB
"""Of a longer reply the rest is seen when it is whole."""

DRAFTS_OWN_MAX = 200
"""Drafts that a worker keeps to tell them: twice the calls that it runs at once."""

DRAFTS_KEPT_CHARS_MAX = 8 * KIB * KIB
"""Drafts that a server keeps for those who come in the middle; the ones that changed longest ago go first."""

DATAGRAMS_AT_ONCE_MAX = 64
"""Datagrams read before others have their turn. Unread ones wait in the kernel, which takes ten by default."""

TOLD_AGAIN_S = 1.0
"""Before a connection that only carries what may be lost is made anew."""

# --- the front door -----------------------------------------------------------------------------------------------
ENVELOPE_BYTES_MAX = 64 * KIB
"""What a client's message carries around the contents of its parts; it stands in the workflow's start (P7)."""

IDEMPOTENCY_KEY_CHARS_MAX = 256
"""A client's key is digested, never stored; a longer one is a mistake."""

CONTEXT_ID_CHARS_MAX = 128
TASK_ID_CHARS_MAX = 128
"""An id that somebody chose is a key in the store; a task's begins its idempotency keys too."""

EVENT_NUMBER_DIGITS_MAX = 18
"""A number with more digits does not fit the store's integers."""

VIEWS_KEPT_MAX = 100
VIEWS_KEPT_EVENTS_MAX = 20_000
"""Tasks that a server remembers as of their last event, and their events in all, at some hundred bytes each: a read
then costs what is new in the log. The ones that were asked for longest ago go first."""

LIST_PAGE_DEFAULT = 50
LIST_PAGE_MAX = 100
"""Tasks of one page, both as A2A names them (3.1.4)."""

STORE_PATIENCE_S = 10.0
"""How long an answer that waits for its task waits for a store that does not answer: a failover takes seconds."""

STREAM_STALL_S = 30.0
"""A client that takes nothing from its stream for so long is cut, and goes on from its last number (B24)."""

CANCEL_WAIT_S = STOP_GRACE_S + 5.0
"""How long a cancel's answer waits for the calls that it cut off; the task is canceled all the same."""

# --- who may come in ----------------------------------------------------------------------------------------------
REQUEST_BYTES_MAX = 12 * KIB * KIB
"""One request's body, unless the operator allows more: a file of 8 MiB in base64, with room. Larger ones go by URL."""

REQUEST_BODY_S = 60.0
"""How long a body may take to come; REQUEST_BYTES_MAX in it is a slow telephone's 1.7 Mbit/s."""

REQUEST_DRAIN_S = 5.0
"""How long the rest of a body that is too large is read and dropped, so that its sender reads why and not a reset."""

JSON_DEPTH_MAX = 50
"""Containers within each other in one body. Real ones have ten. Protobuf's parser ends at 100 levels, two for each of
a data part's; Python's ends with its stack."""

JSON_VALUES_MAX = 100_000
"""Values in one body. Each becomes an object of some 100 bytes, whatever it costs to send: two bytes, for a digit."""

REQUESTS_PER_S = 50.0
"""Requests of one principal, on average. Each costs milliseconds of the store and of Temporal, which all share."""

REQUESTS_BURST_S = 2.0
"""How many seconds' worth of requests may come at once: clients that follow many tasks reconnect together."""

REQUESTS_MAX = 800
"""Requests at once, in all: with the store's and Temporal's connections below the 1,024 files of a usual process."""

REQUESTS_PER_PRINCIPAL_MAX = 300
"""Requests at once of one principal, so that one alone cannot shut everybody else out."""

STREAMS_MAX = 600
"""Streams at once, in all: the rest of REQUESTS_MAX is for what is answered in milliseconds."""

STREAMS_PER_PRINCIPAL_MAX = 200
"""Streams at once of one principal: twice the hundred that a busy client follows, for when it reconnects."""

PRINCIPALS_REMEMBERED_MAX = 10_000
"""Principals whose rate is remembered; of more, the one that has been quiet longest begins anew."""

PRINCIPAL_CHARS_MAX = 256
"""A principal is a key in the store; subjects of tokens have at most 255 characters (OpenID Connect)."""

REFUSALS_TOLD_PER_S = 1.0
REFUSALS_TOLD_BURST = 10.0
"""Refused callers that are told in the log: an attack is seen in it, and does not fill the disk."""

OVERLOAD_RETRY_AFTER_S = 1
"""What is asked of a client that found no place: places are given back all the time."""

CREDENTIAL_RECHECK_S = 30.0
"""How often the credential of a request that is still open is looked at again: what a revoked key's stream may last."""

TOKEN_BYTES_MAX = 8 * KIB
"""A bearer token. Servers on the way take headers of 8 KiB in all."""

CLOCK_SKEW_S = 30.0
"""How far the issuer's clock and ours may differ."""

JWKS_BYTES_MAX = 256 * KIB
JWKS_KEYS_MAX = 64
"""An issuer's key set: real ones have under ten keys, of at most 4 KiB with their certificates."""

JWKS_FETCH_S = 5.0
"""For an issuer's key set; requests that need it wait for it."""

JWKS_FRESH_S = 600.0
"""How long a key set is used before it is fetched again: how long a key that its issuer took back is still good."""

JWKS_AGAIN_S = 30.0
"""Between fetches that an unknown key id causes, and after one that failed: anyone can send unknown key ids."""

JWKS_STALE_S = 3_600.0
"""How long the last key set is used while its issuer does not answer."""
