package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mcpd/mcpd/internal/base/state"
)

// migrations are the steps from an empty schema, with {s} for its quoted name. A schema
// records the number of its steps. A step only adds: servers of the version before run
// beside this one during a rolling restart. So steps are never changed, a function gets a
// new name when it changes, and the functions of the version before stay.
//
// All tables have owners, spaces and keys as SHA-256 digests where an index needs them, as
// an index has no room for long names. Times are milliseconds since 1970.
var migrations = []string{tables, functions, counting, messages, descriptions, results}

const tables = `
CREATE TABLE {s}.fleet (
	one  boolean PRIMARY KEY DEFAULT true CHECK (one),
	name text    NOT NULL
);
-- A replica is an open store, until it is closed or presumed dead: then its row is deleted.
-- Whoever starts work for it holds FOR KEY SHARE of the row, so that no work starts after that.
CREATE TABLE {s}.replicas (
	id    text   PRIMARY KEY,
	fence bigint GENERATED ALWAYS AS IDENTITY,
	host  text   NOT NULL,
	beat  bigint NOT NULL
);
CREATE TABLE {s}.keys (
	id     bigint PRIMARY KEY,
	made   bigint NOT NULL,
	secret bytea  NOT NULL
);
-- Phases of a claim: 0 claimed, 1 answered, 2 the answer was not stored, 3 lost.
CREATE TABLE {s}.claims (
	nonce   bytea    PRIMARY KEY,
	owner   bytea    NOT NULL,
	replica text     NOT NULL,
	fence   bigint   NOT NULL,
	phase   smallint NOT NULL,
	awaited boolean  NOT NULL DEFAULT false,
	expires bigint   NOT NULL,
	size    bigint   NOT NULL,
	answer  bytea
);
CREATE INDEX claims_by_expiry ON {s}.claims (expires);
CREATE INDEX claims_by_replica ON {s}.claims (replica) WHERE phase = 0;
CREATE TABLE {s}.journals (
	nonce   bytea  PRIMARY KEY,
	owner   bytea  NOT NULL,
	expires bigint NOT NULL,
	size    bigint NOT NULL,
	data    bytea  NOT NULL
);
CREATE INDEX journals_by_expiry ON {s}.journals (expires);
-- The status is an index into state.statuses: 0 and 1 have not ended.
CREATE TABLE {s}.tasks (
	id      bytea    PRIMARY KEY,
	owner   bytea    NOT NULL,
	replica text     NOT NULL,
	fence   bigint   NOT NULL,
	status  smallint NOT NULL,
	version bigint   NOT NULL DEFAULT 0,
	expires bigint   NOT NULL,
	size    bigint   NOT NULL,
	data    bytea    NOT NULL
);
CREATE INDEX tasks_by_expiry ON {s}.tasks (expires);
CREATE INDEX tasks_by_replica ON {s}.tasks (replica) WHERE status < 2;
CREATE TABLE {s}.pairs (
	space   bytea  NOT NULL,
	digest  bytea  NOT NULL,
	key     bytea  NOT NULL,
	expires bigint NOT NULL,
	size    bigint NOT NULL,
	value   bytea  NOT NULL,
	PRIMARY KEY (space, digest)
);
CREATE INDEX pairs_in_order ON {s}.pairs (space, substring(key FROM 1 FOR 512));
CREATE INDEX pairs_by_expiry ON {s}.pairs (expires);
-- The usage of each kind, as numbered by the constants of Go, by owner or space. The empty
-- owner is the sum of all. Rows are locked after those that they count, the sum last, and
-- several owners in their order, so that no two transactions wait for each other.
CREATE TABLE {s}.usage (
	kind  smallint NOT NULL,
	owner bytea    NOT NULL,
	count bigint   NOT NULL,
	bytes bigint   NOT NULL,
	PRIMARY KEY (kind, owner)
);
INSERT INTO {s}.usage VALUES (1, '', 0, 0), (2, '', 0, 0), (3, '', 0, 0), (4, '', 0, 0);
`

const functions = `
-- clock_1 returns a given time, or that of the database.
CREATE FUNCTION {s}.clock_1(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- charge_1 adds n records and b bytes to the usage of an owner and to the sum. It returns 0, or
-- without a change 1 if the owner, and 2 if all owners together would exceed a limit. Limits are
-- the count and the bytes of all, and of one owner.
CREATE FUNCTION {s}.charge_1(k smallint, o bytea, n bigint, b bigint, limits bigint[]) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE own record; total record;
BEGIN
	IF n = 0 AND b = 0 THEN RETURN 0; END IF;
	LOOP
		SELECT u.count, u.bytes INTO own FROM {s}.usage u WHERE u.kind = k AND u.owner = o FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO {s}.usage VALUES (k, o, 0, 0) ON CONFLICT DO NOTHING;
	END LOOP;
	SELECT u.count, u.bytes INTO total FROM {s}.usage u WHERE u.kind = k AND u.owner = '' FOR UPDATE;
	IF n > 0 AND own.count + n > limits[3] OR b > 0 AND own.bytes + b > limits[4] THEN RETURN 1; END IF;
	IF n > 0 AND total.count + n > limits[1] OR b > 0 AND total.bytes + b > limits[2] THEN RETURN 2; END IF;
	UPDATE {s}.usage u SET count = u.count + n, bytes = u.bytes + b WHERE u.kind = k AND u.owner IN (o, '');
	RETURN 0;
END $$;

-- refuses_1 reports whether one more record would exceed a limit, without a lock: it spares a full
-- store the work. charge_1 decides.
CREATE FUNCTION {s}.refuses_1(k smallint, o bytea, b bigint, limits bigint[]) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT coalesce(bool_or(CASE WHEN u.owner = '' THEN u.count + 1 > limits[1] OR u.bytes + b > limits[2]
		ELSE u.count + 1 > limits[3] OR u.bytes + b > limits[4] END), false)
	FROM {s}.usage u WHERE u.kind = k AND u.owner IN (o, '')
$$;

-- alive_1 locks the row of a replica until the end of the transaction, and reports whether it exists.
CREATE FUNCTION {s}.alive_1(r text, f bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM {s}.replicas WHERE id = r AND fence = f FOR KEY SHARE;
	RETURN FOUND;
END $$;

-- claim_1 returns the phase of an ended claim with its answer, or an outcome of Go.
CREATE FUNCTION {s}.claim_1(n bytea, o bytea, r text, f bigint, e bigint, b bigint, given bigint, limits bigint[],
	OUT outcome smallint, OUT reply bytea, OUT soonest bigint) LANGUAGE plpgsql AS $$
DECLARE c record; now bigint := {s}.clock_1(given);
BEGIN
	IF e <= now THEN outcome := 10; RETURN; END IF;
	LOOP
		SELECT x.phase, x.replica, x.fence, x.answer INTO c FROM {s}.claims x WHERE x.nonce = n;
		IF NOT FOUND THEN
			IF {s}.refuses_1(1::smallint, o, b, limits) THEN EXIT; END IF;
			IF NOT {s}.alive_1(r, f) THEN outcome := 12; RETURN; END IF;
			INSERT INTO {s}.claims (nonce, owner, replica, fence, phase, expires, size) VALUES (n, o, r, f, 0, e, b) ON CONFLICT DO NOTHING;
			IF FOUND THEN
				IF {s}.charge_1(1::smallint, o, 1, b, limits) = 0 THEN outcome := 0; RETURN; END IF;
				DELETE FROM {s}.claims WHERE nonce = n;
				EXIT;
			END IF;
			CONTINUE;
		END IF;
		IF c.phase <> 0 THEN outcome := c.phase; reply := c.answer; RETURN; END IF;
		-- The claim was already won in the same way, by a statement whose result was not received.
		IF c.replica = r AND c.fence = f THEN outcome := 0; RETURN; END IF;
		UPDATE {s}.claims SET awaited = true WHERE nonce = n AND phase = 0;
		IF FOUND THEN outcome := 11; RETURN; END IF;
	END LOOP;
	outcome := 13;
	SELECT min(x.expires) INTO soonest FROM {s}.claims x;
END $$;

-- finish_1 ends a claim in a phase, if the replica still has it. If the answer does not fit, the claim
-- goes on or, with a final try, ends in phase 2.
CREATE FUNCTION {s}.finish_1(n bytea, r text, f bigint, p smallint, a bytea, b bigint, limits bigint[], final boolean, channel text,
	OUT outcome smallint, OUT soonest bigint) LANGUAGE plpgsql AS $$
DECLARE c record; ends smallint := p;
BEGIN
	SELECT x.owner, x.replica, x.fence, x.phase, x.size, x.awaited INTO c FROM {s}.claims x WHERE x.nonce = n FOR UPDATE;
	IF NOT FOUND OR c.replica <> r OR c.fence <> f THEN outcome := 12; RETURN; END IF;
	-- Already ended in the same way, by a statement whose result was not received.
	IF c.phase <> 0 THEN outcome := c.phase; RETURN; END IF;
	IF b > c.size AND {s}.charge_1(1::smallint, c.owner, 0, b - c.size, limits) <> 0 THEN
		outcome := 13;
		SELECT min(x.expires) INTO soonest FROM {s}.claims x;
		IF NOT final THEN RETURN; END IF;
		ends := 2;
	END IF;
	UPDATE {s}.claims SET phase = ends, answer = CASE WHEN ends = 1 THEN a END, size = CASE WHEN ends = 1 THEN greatest(size, b) ELSE size END WHERE nonce = n;
	IF c.awaited THEN PERFORM pg_notify(channel, r || ' claim ' || encode(n, 'hex')); END IF;
	outcome := coalesce(outcome, p);
END $$;

-- put_journal_1 adds a journal, or replaces one.
CREATE FUNCTION {s}.put_journal_1(n bytea, o bytea, e bigint, b bigint, d bytea, limits bigint[], OUT outcome smallint, OUT soonest bigint) LANGUAGE plpgsql AS $$
DECLARE old bigint;
BEGIN
	INSERT INTO {s}.journals VALUES (n, o, e, b, d) ON CONFLICT DO NOTHING;
	IF FOUND THEN
		IF {s}.charge_1(2::smallint, o, 1, b, limits) = 0 THEN outcome := 0; RETURN; END IF;
		DELETE FROM {s}.journals WHERE nonce = n;
	ELSE
		SELECT size INTO old FROM {s}.journals WHERE nonce = n AND owner = o FOR UPDATE;
		IF FOUND THEN
			IF {s}.charge_1(2::smallint, o, 0, b - old, limits) = 0 THEN
				UPDATE {s}.journals SET expires = e, size = b, data = d WHERE nonce = n;
				outcome := 0; RETURN;
			END IF;
		END IF;
	END IF;
	outcome := 13;
	SELECT min(expires) INTO soonest FROM {s}.journals;
END $$;

-- create_task_1 adds a task of a replica. A task that exists was added by the same statement, whose
-- result was not received.
CREATE FUNCTION {s}.create_task_1(t bytea, o bytea, r text, f bigint, s smallint, e bigint, b bigint, d bytea, limits bigint[], OUT outcome smallint, OUT soonest bigint) LANGUAGE plpgsql AS $$
BEGIN
	IF NOT {s}.alive_1(r, f) THEN outcome := 12; RETURN; END IF;
	INSERT INTO {s}.tasks (id, owner, replica, fence, status, expires, size, data) VALUES (t, o, r, f, s, e, b, d) ON CONFLICT DO NOTHING;
	outcome := 0;
	IF NOT FOUND THEN RETURN; END IF;
	IF {s}.charge_1(3::smallint, o, 1, b, limits) = 0 THEN RETURN; END IF;
	DELETE FROM {s}.tasks WHERE id = t;
	outcome := 13;
	SELECT min(expires) INTO soonest FROM {s}.tasks;
END $$;

-- update_task_1 changes a task that the transaction has locked, after the row of the sender. With a
-- replica, the task runs there from now on.
CREATE FUNCTION {s}.update_task_1(t bytea, r text, f bigint, s smallint, e bigint, b bigint, d bytea, limits bigint[], channel text, sender text,
	OUT outcome smallint, OUT soonest bigint, OUT newest bigint) LANGUAGE plpgsql AS $$
DECLARE old record;
BEGIN
	SELECT owner, size INTO old FROM {s}.tasks WHERE id = t;
	IF {s}.charge_1(3::smallint, old.owner, 0, b - old.size, limits) <> 0 THEN
		outcome := 13;
		SELECT min(expires) INTO soonest FROM {s}.tasks;
		RETURN;
	END IF;
	UPDATE {s}.tasks SET status = s, expires = e, size = b, data = d, version = version + 1,
		replica = CASE WHEN r <> '' THEN r ELSE replica END, fence = CASE WHEN r <> '' THEN f ELSE fence END WHERE id = t RETURNING version INTO newest;
	PERFORM pg_notify(channel, sender || ' task ' || encode(t, 'escape'));
	outcome := 0;
END $$;

-- change_pair_1 replaces or, with v NULL, removes a pair. The transaction has locked its key.
CREATE FUNCTION {s}.change_pair_1(p bytea, k bytea, named bytea, e bigint, b bigint, v bytea, limits bigint[]) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE old bigint; refused smallint;
BEGIN
	SELECT x.size INTO old FROM {s}.pairs x WHERE x.space = p AND x.digest = k FOR UPDATE;
	IF v IS NULL THEN
		IF old IS NULL THEN RETURN 0; END IF;
		DELETE FROM {s}.pairs x WHERE x.space = p AND x.digest = k;
		RETURN {s}.charge_1(4::smallint, p, -1, -old, limits);
	END IF;
	refused := {s}.charge_1(4::smallint, p, CASE WHEN old IS NULL THEN 1 ELSE 0 END, b - coalesce(old, 0), limits);
	IF refused = 0 THEN
		INSERT INTO {s}.pairs AS x VALUES (p, k, named, e, b, v) ON CONFLICT (space, digest) DO UPDATE SET expires = e, size = b, value = v;
	END IF;
	RETURN refused;
END $$;

-- adjust_1 adds to the usage of several owners without a limit: owners in their order, then the sum.
CREATE FUNCTION {s}.adjust_1(k smallint, owners bytea[], counts bigint[], sizes bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE one record; n bigint := 0; b bigint := 0;
BEGIN
	FOR one IN SELECT x.o, sum(x.c)::bigint AS n, sum(x.z)::bigint AS b FROM unnest(owners, counts, sizes) AS x(o, c, z) GROUP BY x.o ORDER BY x.o LOOP
		UPDATE {s}.usage u SET count = u.count + one.n, bytes = u.bytes + one.b WHERE u.kind = k AND u.owner = one.o;
		n := n + one.n;
		b := b + one.b;
	END LOOP;
	UPDATE {s}.usage u SET count = u.count + n, bytes = u.bytes + b WHERE u.kind = k AND u.owner = '' AND (n <> 0 OR b <> 0);
	RETURN n;
END $$;

-- sweep_1 removes at most most expired records of a kind, and returns their number. It leaves
-- records that other transactions use.
CREATE FUNCTION {s}.sweep_1(k smallint, p bytea, given bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE owners bytea[]; counts bigint[]; sizes bigint[]; now bigint := {s}.clock_1(given);
BEGIN
	IF k = 1 THEN
		WITH gone AS (DELETE FROM {s}.claims WHERE nonce IN (SELECT nonce FROM {s}.claims WHERE expires <= now AND phase <> 0 ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED) RETURNING owner, size)
		SELECT array_agg(owner), array_agg(-1::bigint), array_agg(-size) INTO owners, counts, sizes FROM gone;
	ELSIF k = 2 THEN
		WITH gone AS (DELETE FROM {s}.journals WHERE nonce IN (SELECT nonce FROM {s}.journals WHERE expires <= now ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED) RETURNING owner, size)
		SELECT array_agg(owner), array_agg(-1::bigint), array_agg(-size) INTO owners, counts, sizes FROM gone;
	ELSIF k = 3 THEN
		WITH gone AS (DELETE FROM {s}.tasks WHERE id IN (SELECT id FROM {s}.tasks WHERE expires <= now ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED) RETURNING owner, size)
		SELECT array_agg(owner), array_agg(-1::bigint), array_agg(-size) INTO owners, counts, sizes FROM gone;
	ELSE
		WITH gone AS (DELETE FROM {s}.pairs WHERE (space, digest) IN (SELECT space, digest FROM {s}.pairs WHERE expires <= now AND (p IS NULL OR space = p) ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED) RETURNING space, size)
		SELECT array_agg(space), array_agg(-1::bigint), array_agg(-size) INTO owners, counts, sizes FROM gone;
	END IF;
	IF owners IS NULL THEN RETURN 0; END IF;
	RETURN -{s}.adjust_1(k, owners, counts, sizes);
END $$;

-- forget_1 removes the usage of owners without records.
CREATE FUNCTION {s}.forget_1() RETURNS void LANGUAGE sql AS $$
	DELETE FROM {s}.usage WHERE (kind, owner) IN (SELECT kind, owner FROM {s}.usage WHERE count = 0 AND owner <> '' LIMIT 1000 FOR UPDATE SKIP LOCKED)
$$;

-- bury_1 deletes replicas that are presumed dead or, with one given, that replica, and loses their
-- claims. It returns the deleted ones, and leaves those that are starting work. A replica is presumed
-- dead without a heartbeat for ten seconds. After a restart of the database, replicas have ten seconds
-- to come back, unless they were away for ten minutes. The condition is on the locked row, so that a
-- heartbeat that was just committed counts.
CREATE FUNCTION {s}.bury_1(me text, one text, channel text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE dead text[]; lost record; now bigint := {s}.clock_1(NULL); started bigint := (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint;
BEGIN
	IF one <> '' THEN
		DELETE FROM {s}.replicas WHERE id = one;
		dead := ARRAY[one];
	ELSE
		WITH gone AS (DELETE FROM {s}.replicas WHERE id IN (SELECT id FROM {s}.replicas
			WHERE beat < now - 10000 AND (started < now - 10000 OR beat < now - 600000) AND id <> me ORDER BY fence FOR UPDATE SKIP LOCKED) RETURNING id)
		SELECT array_agg(id) INTO dead FROM gone;
	END IF;
	IF dead IS NULL THEN RETURN; END IF;
	FOR lost IN UPDATE {s}.claims SET phase = 3, fence = 0 WHERE replica = ANY (dead) AND phase = 0 RETURNING nonce, awaited LOOP
		IF lost.awaited THEN PERFORM pg_notify(channel, me || ' claim ' || encode(lost.nonce, 'hex')); END IF;
	END LOOP;
	RETURN QUERY SELECT unnest(dead);
END $$;
`

// migrate applies the missing steps to a schema, and records the name of the fleet. Other
// servers that start wait. A complete schema is only read. With d.Existing, an incomplete one is an
// error.
func migrate(ctx context.Context, conn *pgx.Conn, schema string, d state.Database, steps []string) error {
	quoted := pgx.Identifier{schema}.Sanitize()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('mcpd state ' || $1, 0))`, schema); err != nil {
		return err
	}
	version, exists, err := recognize(ctx, tx, schema, quoted)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return permanentError{fmt.Errorf("schema %s was written by a newer version (%d, this version supports %d); run that version", schema, version, len(steps))}
	}
	if version < len(steps) && d.Existing {
		return permanentError{fmt.Errorf("schema %s has no state of this version (%d of %d steps); start a server of this version first", schema, version, len(steps))}
	}
	if version < len(steps) {
		text := ""
		if !exists {
			text = fmt.Sprintf("CREATE SCHEMA %s;\n", quoted)
		}
		if version == 0 {
			text += fmt.Sprintf("CREATE TABLE %s.migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());\n", quoted)
		}
		for i, step := range steps[version:] {
			text += strings.ReplaceAll(step, "{s}", quoted) + fmt.Sprintf(";\nINSERT INTO %s.migrations (version) VALUES (%d);\n", quoted, version+i+1)
		}
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	if err := joinFleet(ctx, tx, schema, quoted, d.Fleet); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// recognize returns the number of applied steps and whether the schema exists, and rejects the
// schema of another program.
func recognize(ctx context.Context, tx pgx.Tx, schema, quoted string) (version int, exists bool, err error) {
	var known bool
	var relations int
	err = tx.QueryRow(ctx, `SELECT to_regnamespace($2) IS NOT NULL, to_regclass($1) IS NOT NULL, (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($2))`,
		quoted+".migrations", quoted).Scan(&exists, &known, &relations)
	switch {
	case err != nil:
		return 0, false, err
	case !known && relations > 0:
		return 0, false, permanentError{fmt.Errorf("schema %s belongs to another program; name another with ?schema=NAME in the URL", schema)}
	case !known:
		return 0, exists, nil
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM `+quoted+`.migrations`).Scan(&version)
	return version, exists, err
}

// joinFleet records the name of the fleet in a new schema, or compares it.
func joinFleet(ctx context.Context, tx pgx.Tx, schema, quoted, fleet string) error {
	var name string
	err := tx.QueryRow(ctx, `SELECT coalesce((SELECT name FROM `+quoted+`.fleet), '')`).Scan(&name)
	switch {
	case err != nil:
		return err
	case name == "":
		_, err = tx.Exec(ctx, `INSERT INTO `+quoted+`.fleet (name) VALUES ($1)`, cmp.Or(fleet, "mcpd"))
		return err
	case fleet != "" && name != fleet:
		return permanentError{fmt.Errorf("schema %s belongs to the fleet %q, and this server to %q; name another schema with ?schema=NAME in the URL", schema, name, fleet)}
	}
	return nil
}
