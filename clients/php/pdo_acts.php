<?php

// Runs one act of PDO on MySQL: `php pdo_acts.php ACT`, or `--list`.
//
// PDO writes values into the text, unless PDO::ATTR_EMULATE_PREPARES is false. The connection comes from the MYSQL_*
// environment. Nothing is printed on success.

declare(strict_types=1);

require __DIR__ . '/seeded.php';

const AUTHORS = 'SELECT id, name FROM authors ORDER BY id';
const BOOKS_OF = 'SELECT title, price FROM books WHERE author_id = ? ORDER BY id';
const INSERT_LOG = 'INSERT INTO log (message) VALUES (?)';
const UPDATE_ACCOUNT = 'UPDATE accounts SET balance = balance + ? WHERE id = ?';
const VALUE_OF = 'SELECT v FROM t WHERE id = ?';
const NATIVE = [PDO::ATTR_EMULATE_PREPARES => false];
const PERSISTENT = [PDO::ATTR_PERSISTENT => true];

function connect(array $options = []): PDO
{
    $dsn = sprintf(
        'mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4',
        getenv('MYSQL_HOST'),
        getenv('MYSQL_TCP_PORT'),
        getenv('MYSQL_DATABASE'),
    );
    return new PDO($dsn, getenv('MYSQL_USER'), getenv('MYSQL_PWD'), $options);
}

/** An act with a connection of its own. */
function connected(callable $work, array $options = []): Closure
{
    return fn () => $work(connect($options));
}

function in_transaction(callable $work): Closure
{
    return function (PDO $database) use ($work): void {
        $database->beginTransaction();
        $work($database);
        $database->commit();
    };
}

function run(PDO $database, string $query, array $values = []): PDOStatement
{
    $statement = $database->prepare($query);
    $statement->execute($values);
    return $statement;
}

/** The rows of a query. */
function rows(PDO $database, string $query, mixed ...$values): array
{
    return run($database, $query, $values)->fetchAll(PDO::FETCH_ASSOC);
}

function marks(array $values, string $mark = '?'): string
{
    return implode(', ', array_fill(0, count($values), $mark));
}

function select(PDO $database, int $id): void
{
    expect(rows($database, VALUE_OF, $id), [['v' => "value $id"]]);
}

/** Asks for the ids $step, 2 * $step, ... one by one. */
function selects(int $count, int $step = 1): Closure
{
    return function (PDO $database) use ($count, $step): void {
        foreach (range(1, $count) as $number) {
            select($database, $number * $step);
        }
    };
}

/** The same with one PDOStatement. */
function selects_prepared_once(int $count, int $step = 1): Closure
{
    return function (PDO $database) use ($count, $step): void {
        $statement = $database->prepare(VALUE_OF);
        foreach (range(1, $count) as $number) {
            $statement->execute([$number * $step]);
            expect($statement->fetchAll(PDO::FETCH_COLUMN), ['value ' . $number * $step]);
        }
    };
}

/** PDO has no ping: this is what programs send instead. */
function ping(PDO $database): void
{
    expect($database->query('SELECT 1')->fetchColumn(), 1);
}

function insert_each(PDO $database): void
{
    $statement = $database->prepare(INSERT_LOG);
    foreach (messages() as $text) {
        $statement->execute([$text]);
    }
}

function insert_rows(int $count): Closure
{
    return function (PDO $database) use ($count): void {
        $texts = messages($count);
        $inserted = run($database, 'INSERT INTO log (message) VALUES ' . marks($texts, '(?)'), $texts);
        expect($inserted->rowCount(), $count);
    };
}

function update_each(PDO $database): void
{
    $statement = $database->prepare(UPDATE_ACCOUNT);
    foreach (ACCOUNT_IDS as $id) {
        $statement->execute([1, $id]);
        expect($statement->rowCount(), 1);
    }
}

function update_all(PDO $database): void
{
    $query = 'UPDATE accounts SET balance = balance + 1 WHERE id IN (' . marks(ACCOUNT_IDS) . ')';
    expect(run($database, $query, ACCOUNT_IDS)->rowCount(), WRITE_ROWS);
}

function books_of_each(int $limit): Closure
{
    return function (PDO $database) use ($limit): void {
        foreach (rows($database, AUTHORS . " LIMIT $limit") as $author) {
            expect(count(rows($database, BOOKS_OF, $author['id'])), BOOKS_PER_AUTHOR);
        }
    };
}

function books_of_all(PDO $database): void
{
    $ids = array_column(rows($database, AUTHORS), 'id');
    $books = rows($database, 'SELECT title, price FROM books WHERE author_id IN (' . marks($ids) . ')', ...$ids);
    expect(count($books), AUTHOR_COUNT * BOOKS_PER_AUTHOR);
}

function repeat(int $times): Closure
{
    return function (PDO $database) use ($times): void {
        for ($i = 0; $i < $times; $i++) {
            expect(rows($database, 'SELECT name FROM authors WHERE id = ?', 140), [['name' => 'author 140']]);
        }
    };
}

function ten_transactions(PDO $database): void
{
    foreach (range(1, 10) as $number) {
        in_transaction(fn (PDO $database) => select($database, $number * 7))($database);
    }
}

/** Ten requests, each with a PDO object of its own. */
function ten_objects(array $options): Closure
{
    return function () use ($options): void {
        foreach (range(1, 10) as $number) {
            $database = connect($options);
            select($database, $number * 7);
            $database = null;
        }
    };
}

function balance_of_each(PDO $database): void
{
    foreach (array_slice(ACCOUNT_IDS, 0, 12) as $id) {
        expect(count(rows($database, 'SELECT balance FROM accounts WHERE id = ?', $id)), 1);
    }
}

function balance_of_all(PDO $database): void
{
    $ids = array_slice(ACCOUNT_IDS, 0, 12);
    expect(count(rows($database, 'SELECT id, balance FROM accounts WHERE id IN (' . marks($ids) . ')', ...$ids)), 12);
}

function count_authors(PDO $database): void
{
    expect($database->query('SELECT count(*) FROM authors')->fetchColumn(), AUTHOR_COUNT);
}

/** Ten requests on one connection, with something before each. */
function requests(callable $before): Closure
{
    return function (PDO $database) use ($before): void {
        for ($i = 0; $i < 10; $i++) {
            $before($database);
            count_authors($database);
        }
    };
}

function isolation(PDO $database): void
{
    $database->exec('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
}

const AUTHOR_PAGE = [
    'SELECT name FROM authors WHERE id = ?',
    'SELECT title FROM books WHERE author_id = ? ORDER BY id',
    'SELECT max(price) FROM books WHERE author_id = ?',
];

function pages_by_three(PDO $database): void
{
    foreach (PAGE_AUTHORS as $author) {
        foreach (AUTHOR_PAGE as $query) {
            expect(count(rows($database, $query, $author)) > 0, true);
        }
    }
}

function pages_by_one(PDO $database): void
{
    $query = 'SELECT name, group_concat(title ORDER BY books.id) AS titles, max(price) AS price FROM authors'
        . ' JOIN books ON author_id = authors.id WHERE authors.id = ? GROUP BY name';
    foreach (PAGE_AUTHORS as $author) {
        expect(rows($database, $query, $author)[0]['name'], "author $author");
    }
}

function read_then_write(PDO $database): void
{
    foreach (ACCOUNT_IDS as $id) {
        $row = rows($database, 'SELECT balance FROM accounts WHERE id = ? FOR UPDATE', $id)[0];
        run($database, 'UPDATE accounts SET balance = ? WHERE id = ?', [$row['balance'] + 1, $id]);
    }
}

function look_up_then_insert(PDO $database): void
{
    foreach (unseen() as $name) {
        if (!rows($database, 'SELECT id FROM tags WHERE name = ?', $name)) {
            run($database, 'INSERT INTO tags (name) VALUES (?)', [$name]);
        }
    }
}

function insert_unless_there(PDO $database): void
{
    foreach (unseen() as $name) {
        expect(run($database, 'INSERT IGNORE INTO tags (name) VALUES (?)', [$name])->rowCount(), 1);
    }
}

function two_reads(PDO $database): void
{
    count_authors($database);
    expect(count(rows($database, 'SELECT max(price) FROM books')), 1);
}

function ten_times(callable $work): Closure
{
    return function (PDO $database) use ($work): void {
        for ($i = 0; $i < 10; $i++) {
            $work($database);
        }
    };
}

/** Nothing was written, so the program sees nothing to commit. */
function read_then_roll_back(PDO $database): void
{
    $database->beginTransaction();
    two_reads($database);
    $database->rollBack();
}

/** Each answer names the next question. */
function chain(PDO $database): void
{
    $number = 713;
    for ($i = 0; $i < 10; $i++) {
        $number = rows($database, 'SELECT next FROM links WHERE id = ?', $number)[0]['next'];
    }
    expect($number, 713);
}

/** Too few to be a loop. */
function two_of_each(PDO $database): void
{
    foreach (array_slice(PAGE_AUTHORS, 0, 2) as $author) {
        expect(count(rows($database, BOOKS_OF, $author)), BOOKS_PER_AUTHOR);
    }
}

/** Each row is read when the program asks for it; they all came with one answer. */
function row_by_row(PDO $database): void
{
    $count = 0;
    foreach ($database->query('SELECT id, v FROM t ORDER BY id') as $row) {
        expect($row['v'], "value {$row['id']}");
        $count++;
    }
    expect($count, TABLE_ROWS);
}

/** Keys that the server made: they come with the answers to INSERT. */
function inserts_with_keys(PDO $database): void
{
    foreach (messages(2) as $text) {
        run($database, INSERT_LOG, [$text]);
        expect($database->lastInsertId() > 0, true);
    }
}

main([
    'connect' => connected(fn () => null),
    'connect_init_command' => connected(fn () => null, [PDO::MYSQL_ATTR_INIT_COMMAND => "SET time_zone = '+00:00'"]),
    'connect_autocommit_off' => connected(fn () => null, [PDO::ATTR_AUTOCOMMIT => 0]),
    'select_1' => connected(selects(1)),
    'select_2' => connected(selects(2)),
    'select_6' => connected(selects(6)),
    'native_1' => connected(selects(1), NATIVE),
    'native_2' => connected(selects(2), NATIVE),
    'native_2_once' => connected(selects_prepared_once(2), NATIVE),
    'txn_1' => connected(in_transaction(selects(1))),
    'txn_2' => connected(in_transaction(selects(2))),
    'txn_empty' => connected(in_transaction(fn () => null)),
    'txn_left_open' => connected(function (PDO $database): void {
        $database->beginTransaction();
        select($database, 1);
    }),
    'autocommit_off_1' => connected(function (PDO $database): void {
        select($database, 1);
        $database->commit();
    }, [PDO::ATTR_AUTOCOMMIT => 0]),
    'ping_3' => connected(function (PDO $database): void {
        foreach (range(1, 3) as $_) {
            ping($database);
        }
    }),
    'server_info_1' => connected(function (PDO $database): void {
        expect(str_starts_with($database->getAttribute(PDO::ATTR_SERVER_INFO), 'Uptime'), true);
    }),
    'server_version_1' => connected(function (PDO $database): void {
        expect($database->getAttribute(PDO::ATTR_SERVER_VERSION) !== '', true);
    }),
    'insert_rows_3' => connected(insert_rows(3)),
    'last_insert_id_2' => connected(inserts_with_keys(...)),
    'several_results' => connected(function (PDO $database): void {
        $statement = $database->query('SELECT 1; SELECT 2');
        expect($statement->fetchColumn(), 1);
        expect($statement->nextRowset(), true);
        expect($statement->fetchColumn(), 2);
    }),
    'unbuffered' => connected(row_by_row(...), [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]),
    'savepoint' => connected(in_transaction(function (PDO $database): void {
        $database->exec('SAVEPOINT one');
        select($database, 1);
        $database->exec('RELEASE SAVEPOINT one');
    })),
    'persistent_3' => function (): void {
        foreach (range(1, 3) as $id) {
            select(connect(PERSISTENT), $id);
        }
    },
    'n_plus_one_10' => connected(in_transaction(books_of_each(LOOP_COUNT))),

    'bad_OT001' => connected(books_of_each(AUTHOR_COUNT)),
    'fixed_OT001' => connected(books_of_all(...)),
    'bad_OT002' => connected(in_transaction(insert_each(...))),
    'fixed_OT002' => connected(in_transaction(insert_rows(WRITE_ROWS))),
    'bad_OT002_update' => connected(in_transaction(update_each(...))),
    'fixed_OT002_update' => connected(in_transaction(update_all(...))),
    'bad_OT003' => connected(insert_each(...)),
    'fixed_OT003' => connected(insert_rows(WRITE_ROWS)),
    'bad_OT005' => connected(in_transaction(repeat(10))),
    'fixed_OT005' => connected(in_transaction(repeat(1))),
    'bad_OT006' => connected(ten_transactions(...)),
    'fixed_OT006' => connected(selects(10, 7)),
    'bad_OT007' => connected(selects(10, 7), NATIVE),
    'fixed_OT007' => connected(selects_prepared_once(10, 7), NATIVE),
    'fixed_OT007_emulated' => connected(selects(10, 7)),
    'bad_OT008' => ten_objects([]),
    'fixed_OT008' => connected(selects(10, 7)),
    'fixed_OT008_persistent' => ten_objects(PERSISTENT),
    'bad_OT009' => connected(balance_of_each(...)),
    'fixed_OT009' => connected(balance_of_all(...)),
    'bad_OT011' => connected(requests(ping(...))),
    'bad_OT011_set' => connected(requests(isolation(...))),
    'fixed_OT011' => connected(requests(fn () => null)),
    'fixed_OT011_set' => connected(requests(fn () => null), [
        PDO::MYSQL_ATTR_INIT_COMMAND => 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    ]),
    'bad_OT012' => connected(pages_by_three(...)),
    'fixed_OT012' => connected(pages_by_one(...)),
    'bad_OT013' => connected(in_transaction(read_then_write(...))),
    'fixed_OT013' => connected(in_transaction(update_each(...))),
    'bad_OT015' => connected(in_transaction(look_up_then_insert(...))),
    'fixed_OT015' => connected(in_transaction(insert_unless_there(...))),
    'bad_OT016' => connected(ten_times(read_then_roll_back(...))),
    'fixed_OT016' => connected(ten_times(two_reads(...))),

    'trap_chain' => connected(chain(...)),
    'trap_two_of_each' => connected(two_of_each(...)),
    'trap_row_by_row' => connected(row_by_row(...), [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]),
    // Rows of one INSERT are one trip, however many.
    'trap_several_rows_in_one' => connected(function (PDO $database): void {
        insert_rows(WRITE_ROWS)($database);
        insert_rows(WRITE_ROWS)($database);
    }),
]);
