package postgres

// counting is the step of the schema for limits. Its times are nanoseconds since 1970. The tables are
// not logged: counts need not survive a crash, and a commit does not wait for the disk.
const counting = `
-- A secret that the replicas share, such as that of the keys of limits.
CREATE TABLE {s}.secrets (
	name   text  PRIMARY KEY,
	secret bytea NOT NULL
);
-- The burst of a key is complete again at its theoretical arrival time (GCRA). Whoever charges a key locks its row,
-- and several in their order.
CREATE UNLOGGED TABLE {s}.counters (
	key bytea  PRIMARY KEY,
	tat bigint NOT NULL
) WITH (fillfactor = 50);
-- The running calls of a replica, named by its fence, that hold a place of a key. They count until ends, if the
-- replica exists.
CREATE UNLOGGED TABLE {s}.places (
	key     bytea   NOT NULL,
	replica bigint  NOT NULL,
	running integer NOT NULL,
	ends    bigint  NOT NULL,
	PRIMARY KEY (key, replica)
) WITH (fillfactor = 50);
CREATE INDEX places_replica ON {s}.places (replica);

CREATE FUNCTION {s}.nanos_1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
$$;

-- count_1 decides requests in their order, all charges of a request or none. A charge is six numbers: its
-- request, the position of its key, and the interval, the time of the burst, the concurrency and the hold;
-- charges are in the order of their requests, and keys in theirs. count_1 first writes the places of the replica
-- for the held keys and, with reset, removes those of other keys. Statements for one key each are faster here than joins for all.
--
-- The reply is the outcome, the time, the number of new counters, and two numbers for each request: 0 if it was charged, else
-- the number of the charge with the longest wait, negative if the charge has no counter; and the wait, negative if the
-- concurrency is the reason.
CREATE FUNCTION {s}.count_1(f bigint, given bigint, reset boolean, held bytea[], numbers integer[], spans bigint[], keys bytea[], may boolean[], requests integer, charges bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	reply bigint[] := array_fill(0::bigint, ARRAY[3 + 2 * requests]);
	size integer := coalesce(cardinality(keys), 0); n integer := coalesce(cardinality(charges), 0) / 6;
	tats bigint[]; olds bigint[]; present bigint[]; taken integer[]; until bigint[]; alive boolean;
	now bigint; tat bigint; i integer; j integer; k integer; at integer; worst bigint; wait bigint; early bigint; busy boolean;
BEGIN
	IF reset THEN DELETE FROM {s}.places p WHERE p.replica = f AND p.key <> ALL (coalesce(held, '{}')); END IF;
	FOR i IN 1 .. coalesce(cardinality(held), 0) LOOP
		now := coalesce(given, {s}.nanos_1());
		UPDATE {s}.places p SET running = numbers[i], ends = now + spans[i] WHERE p.key = held[i] AND p.replica = f;
		IF NOT FOUND THEN INSERT INTO {s}.places VALUES (held[i], f, numbers[i], now + spans[i]); END IF;
	END LOOP;
	IF n = 0 THEN RETURN reply; END IF;
	FOR i IN 1 .. size LOOP
		SELECT c.tat INTO tat FROM {s}.counters c WHERE c.key = keys[i] FOR UPDATE;
		IF NOT FOUND AND may[i] THEN
			INSERT INTO {s}.counters VALUES (keys[i], 0) ON CONFLICT DO NOTHING;
			IF FOUND THEN
				reply[3] := reply[3] + 1;
				tat := 0;
			ELSE
				SELECT c.tat INTO tat FROM {s}.counters c WHERE c.key = keys[i] FOR UPDATE;
			END IF;
		END IF;
		tats[i] := tat;
	END LOOP;
	-- Read while holding the locks, the time never decreases for a counter.
	now := coalesce(given, {s}.nanos_1());
	reply[2] := now;
	olds := tats;
	FOR i IN 0 .. n - 1 LOOP
		k := charges[6 * i + 2];
		IF charges[6 * i + 5] > 0 AND present[k] IS NULL THEN
			SELECT coalesce(sum(p.running), 0), coalesce(bool_or(x.fence = f), false) INTO wait, alive
				FROM {s}.replicas x LEFT JOIN {s}.places p ON p.key = keys[k] AND p.replica = x.fence AND p.running > 0 AND p.ends > now;
			-- A dead replica has no places.
			IF NOT alive THEN reply[1] := 12; RETURN reply; END IF;
			present[k] := wait;
			taken[k] := 0;
			until[k] := 0;
		END IF;
	END LOOP;
	i := 0;
	WHILE i < n LOOP
		at := charges[6 * i + 1];
		j := i;
		worst := 0;
		WHILE j < n AND charges[6 * j + 1] = at LOOP
			k := charges[6 * j + 2];
			IF tats[k] IS NULL THEN
				worst := 1;
				reply[2 * at + 2] := -j - 1;
				EXIT;
			END IF;
			busy := charges[6 * j + 5] > 0 AND present[k] + taken[k] >= charges[6 * j + 5];
			wait := CASE WHEN busy THEN 1000000000 ELSE 0 END;
			IF charges[6 * j + 3] > 0 THEN
				early := greatest(tats[k] - now, 0) + charges[6 * j + 3] - charges[6 * j + 4];
				IF early > wait THEN wait := early; busy := false; END IF;
			END IF;
			IF wait > worst THEN
				worst := wait;
				reply[2 * at + 2] := j + 1;
				reply[2 * at + 3] := CASE WHEN busy THEN -wait ELSE wait END;
			END IF;
			j := j + 1;
		END LOOP;
		IF worst > 0 THEN
			WHILE j < n AND charges[6 * j + 1] = at LOOP j := j + 1; END LOOP;
			i := j;
		END IF;
		WHILE i < j LOOP
			k := charges[6 * i + 2];
			IF charges[6 * i + 3] > 0 THEN tats[k] := greatest(tats[k], now) + charges[6 * i + 3]; END IF;
			IF charges[6 * i + 5] > 0 THEN
				taken[k] := taken[k] + 1;
				until[k] := greatest(until[k], now + charges[6 * i + 6]);
			END IF;
			i := i + 1;
		END LOOP;
	END LOOP;
	FOR i IN 1 .. size LOOP
		IF tats[i] <> olds[i] THEN UPDATE {s}.counters c SET tat = tats[i] WHERE c.key = keys[i]; END IF;
		IF taken[i] > 0 THEN
			UPDATE {s}.places p SET running = p.running + taken[i], ends = greatest(p.ends, until[i]) WHERE p.key = keys[i] AND p.replica = f;
			IF NOT FOUND THEN INSERT INTO {s}.places VALUES (keys[i], f, taken[i], until[i]); END IF;
		END IF;
	END LOOP;
	RETURN reply;
END $$;

-- sweep_counters_1 removes counters that are in their initial state for a minute, and places of replicas that do not
-- exist, at most most of each. It returns the larger number. Only the oldest replica does.
CREATE FUNCTION {s}.sweep_counters_1(r text, given bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE before bigint := coalesce(given, {s}.nanos_1()) - 60000000000; removed bigint; gone bigint;
BEGIN
	IF r IS DISTINCT FROM (SELECT id FROM {s}.replicas ORDER BY fence LIMIT 1) THEN RETURN 0; END IF;
	DELETE FROM {s}.places WHERE (key, replica) IN (SELECT p.key, p.replica FROM {s}.places p
		WHERE p.running = 0 AND p.ends < before OR NOT EXISTS (SELECT 1 FROM {s}.replicas y WHERE y.fence = p.replica) LIMIT most FOR UPDATE SKIP LOCKED);
	GET DIAGNOSTICS gone = ROW_COUNT;
	DELETE FROM {s}.counters WHERE key IN (SELECT y.key FROM {s}.counters y
		WHERE y.tat < before AND NOT EXISTS (SELECT 1 FROM {s}.places p WHERE p.key = y.key) LIMIT most FOR UPDATE SKIP LOCKED);
	GET DIAGNOSTICS removed = ROW_COUNT;
	RETURN greatest(gone, removed);
END $$;
`
