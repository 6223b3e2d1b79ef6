-- What a batch of 50 tasks costs PostgreSQL alone: the rows of a claim and of an end as the board writes them, with its
-- events and attempts, and nothing around them. Run by pgbench, `bench/limit.py`; a test compares the rows.
BEGIN;
WITH next AS (
    SELECT id, status FROM tasks
    WHERE pool = 'board' AND lane = 2 AND status IN ('pending', 'retrying') AND held_by IS NULL
        AND unmet_needs = 0 AND (phase = 'work' OR has_action) AND NOT suspect AND ready_at <= now()
    ORDER BY rank, ready_at, id LIMIT 50 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE tasks SET status = 'running', lease_owner = 'limit', lease_token = lease_token + 1,
        lease_until = now() + interval '60 seconds', started_at = coalesce(started_at, now()),
        version = version + 1, event_seq = event_seq + 1, updated_at = now()
    FROM next WHERE tasks.id = next.id
    RETURNING tasks.*, next.status AS was
), told AS (
    INSERT INTO task_events (task, seq, at, kind, from_status, to_status, actor_kind, actor_name, channel, attempt)
    SELECT id, event_seq, now(), 'started', was, 'running', 'worker', 'limit', 'worker', lease_token FROM claimed
), begun AS (
    INSERT INTO attempts (task, number, phase, round, worker, type_version, started_at)
    SELECT id, lease_token, phase, round, 'limit', type_version, now() FROM claimed
)
SELECT array_agg(id)::text AS ids FROM claimed \gset
SELECT task, payload FROM task_data WHERE task = ANY (:ids::bigint[]);
COMMIT;
BEGIN;
WITH ended AS (
    UPDATE tasks SET status = 'done', lease_owner = NULL, lease_until = NULL, finished_at = now(), has_action = false,
        version = version + 1, event_seq = event_seq + 1, updated_at = now()
    WHERE id = ANY (:ids::bigint[]) AND status = 'running' RETURNING *
), told AS (
    INSERT INTO task_events (task, seq, at, kind, from_status, to_status, actor_kind, actor_name, channel, attempt)
    SELECT id, event_seq, now(), 'done', 'running', 'done', 'worker', 'limit', 'worker', lease_token FROM ended
), tried AS (
    UPDATE attempts SET finished_at = now(), outcome = 'succeeded', output = payload
    FROM ended JOIN task_data ON task_data.task = ended.id
    WHERE attempts.task = ended.id AND attempts.number = ended.lease_token
)
UPDATE task_data SET result = payload FROM ended WHERE task_data.task = ended.id;
COMMIT;
