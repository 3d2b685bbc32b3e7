<?php

// Runs one act of Eloquent, Laravel's object-relational mapper, on MySQL: `php eloquent_acts.php ACT`, or `--list`.
//
// The connection's settings are those of a new project's config/database.php. So statements are prepared by the server:
// Laravel sets PDO::ATTR_EMULATE_PREPARES to false.

declare(strict_types=1);

use Illuminate\Database\Capsule\Manager as DB;
use Illuminate\Database\Eloquent\Collection;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;
use Illuminate\Database\Eloquent\Relations\HasMany;

require 'Illuminate/Database/autoload.php';
require __DIR__ . '/seeded.php';

/** What the tables have in common: they have no created_at and updated_at. */
abstract class Row extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

class Author extends Row
{
    public function books(): HasMany
    {
        return $this->hasMany(Book::class);
    }
}

class Book extends Row
{
    public function author(): BelongsTo
    {
        return $this->belongsTo(Author::class);
    }
}

class Item extends Row
{
    protected $table = 't';
}

class Log extends Row
{
    protected $table = 'log';
}

class Account extends Row
{
}

class Tag extends Row
{
}

class Link extends Row
{
}

const EMULATED = ['options' => [PDO::ATTR_EMULATE_PREPARES => true]];

/** An act with a connection of its own; it opens when it is first used. */
function connected(callable $work, array $settings = []): Closure
{
    return function () use ($work, $settings): void {
        $database = new DB();
        $database->addConnection($settings + [
            'driver' => 'mysql',
            'host' => getenv('MYSQL_HOST'),
            'port' => getenv('MYSQL_TCP_PORT'),
            'database' => getenv('MYSQL_DATABASE'),
            'username' => getenv('MYSQL_USER'),
            'password' => getenv('MYSQL_PWD'),
            'unix_socket' => '',
            'charset' => 'utf8mb4',
            'collation' => 'utf8mb4_unicode_ci',
            'prefix' => '',
            'prefix_indexes' => true,
            'strict' => true,
            'engine' => null,
        ]);
        $database->setAsGlobal();
        $database->bootEloquent();
        $work();
    };
}

function in_transaction(callable $work): Closure
{
    return fn () => DB::connection()->transaction(fn () => $work());
}

function open(): void
{
    DB::connection()->getPdo();
}

function select(int $id): void
{
    expect(Item::find($id)->v, "value $id");
}

/** Asks for the ids $step, 2 * $step, ... one by one. */
function selects(int $count, int $step = 1): Closure
{
    return function () use ($count, $step): void {
        foreach (range(1, $count) as $number) {
            select($number * $step);
        }
    };
}

function log_rows(int $count = FEW): array
{
    return array_map(fn (string $text) => ['message' => $text], messages($count));
}

function few_ids(): array
{
    return array_slice(ACCOUNT_IDS, 0, FEW);
}

function twelve_ids(): array
{
    return array_slice(ACCOUNT_IDS, 0, 12);
}

function expect_books(Collection $authors): void
{
    foreach ($authors as $author) {
        expect(count($author->books), BOOKS_PER_AUTHOR);
    }
}

function all_books(string ...$relations): Closure
{
    return function () use ($relations): void {
        $authors = Author::with($relations)->orderBy('id')->get();
        expect(count($authors), AUTHOR_COUNT);
        expect_books($authors);
    };
}

function insert_each(): void
{
    foreach (messages(FEW) as $text) {
        Log::create(['message' => $text]);
    }
}

function insert_all(int $count = FEW): void
{
    expect(Log::insert(log_rows($count)), true);
}

function save_each(): void
{
    foreach (Account::whereIn('id', few_ids())->get() as $account) {
        $account->balance += 1;
        $account->save();
    }
}

function increment_all(): void
{
    expect(Account::whereIn('id', few_ids())->increment('balance'), FEW);
}

function repeat(int $times): Closure
{
    return function () use ($times): void {
        for ($i = 0; $i < $times; $i++) {
            expect(Author::find(140)->name, 'author 140');
        }
    };
}

function ten_transactions(): void
{
    foreach (range(1, 10) as $number) {
        in_transaction(fn () => select($number * 7))();
    }
}

/** Ten requests, each with a connection of its own, as in a process that serves one request. */
function ten_connections(): void
{
    foreach (range(1, 10) as $number) {
        select($number * 7);
        DB::connection()->disconnect();
    }
}

function balance_of_each(): void
{
    foreach (twelve_ids() as $id) {
        expect(Account::find($id)->id, $id);
    }
}

function balance_of_all(): void
{
    expect(count(Account::find(twelve_ids())), 12);
}

function ping(): void
{
    DB::connection()->select('select 1');
}

function isolation(): void
{
    DB::connection()->unprepared('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
}

/** Ten requests on one connection, with something before each. */
function requests(callable $before): Closure
{
    return function () use ($before): void {
        for ($i = 0; $i < 10; $i++) {
            $before();
            expect(Author::count(), AUTHOR_COUNT);
        }
    };
}

function pages_by_three(): void
{
    foreach (PAGE_AUTHORS as $id) {
        expect(Author::find($id)->name, "author $id");
        expect(Book::where('author_id', $id)->orderBy('id')->count(), BOOKS_PER_AUTHOR);
        expect(Book::where('author_id', $id)->max('price') > 0, true);
    }
}

/** One query: sub-queries of the author's row. */
function pages_by_one(): void
{
    foreach (PAGE_AUTHORS as $id) {
        $author = Author::withCount('books')->withMax('books', 'price')->find($id);
        expect([$author->name, $author->books_count], ["author $id", BOOKS_PER_AUTHOR]);
        expect($author->books_max_price > 0, true);
    }
}

function lock_then_save(): void
{
    foreach (few_ids() as $id) {
        $account = Account::lockForUpdate()->find($id);
        $account->balance += 1;
        $account->save();
    }
}

function increment_each(): void
{
    foreach (few_ids() as $id) {
        expect(Account::where('id', $id)->increment('balance'), 1);
    }
}

function first_or_create(int $count): Closure
{
    return function () use ($count): void {
        foreach (unseen($count) as $name) {
            expect(Tag::firstOrCreate(['name' => $name])->wasRecentlyCreated, true);
        }
    };
}

function insert_or_ignore(): void
{
    $rows = array_map(fn (string $name) => ['name' => $name], unseen(FEW));
    expect(Tag::insertOrIgnore($rows), FEW);
}

function two_reads(): void
{
    expect(Author::count(), AUTHOR_COUNT);
    expect(Book::max('price') > 0, true);
}

function ten_times(callable $work): Closure
{
    return function () use ($work): void {
        for ($i = 0; $i < 10; $i++) {
            $work();
        }
    };
}

/** Nothing was written, so the program sees nothing to commit. */
function read_then_roll_back(): void
{
    DB::connection()->beginTransaction();
    two_reads();
    DB::connection()->rollBack();
}

/** Each answer names the next question. */
function chain(): void
{
    $number = 713;
    for ($i = 0; $i < 10; $i++) {
        $number = Link::find($number)->next;
    }
    expect($number, 713);
}

/** Too few to be a loop. */
function two_of_each(): void
{
    expect_books(Author::orderBy('id')->take(2)->get());
}

/** Each portion begins after the last row of the one before it. */
function portions(): void
{
    $count = 0;
    Item::chunkById(50, function (Collection $items) use (&$count): void {
        $count += count($items);
    });
    expect($count, TABLE_ROWS);
}

main([
    'connect' => connected(open(...)),
    'connect_emulated' => connected(open(...), EMULATED),
    'connect_more' => connected(open(...), ['isolation_level' => 'READ COMMITTED', 'timezone' => '+00:00']),
    'select_1' => connected(selects(1)),
    'select_2' => connected(selects(2)),
    'select_6' => connected(selects(6)),
    'emulated_2' => connected(selects(2), EMULATED),
    'txn_1' => connected(in_transaction(selects(1))),
    'txn_2' => connected(in_transaction(selects(2))),
    'txn_empty' => connected(in_transaction(fn () => null)),
    'nested_txn' => connected(in_transaction(in_transaction(selects(1)))),
    'ping_3' => connected(function (): void {
        foreach (range(1, 3) as $_) {
            ping();
        }
    }),
    'create_1' => connected(function (): void {
        expect(Log::create(['message' => 'message 1'])->id > 0, true);
    }),
    'update_obj' => connected(function (): void {
        $account = Account::find(311);
        $account->balance += 1;
        expect($account->save(), true);
    }),
    'save_unchanged' => connected(function (): void {
        expect(Account::find(311)->save(), true);
    }),
    'insert_3' => connected(fn () => insert_all(3)),
    'upsert_3' => connected(function (): void {
        $rows = array_map(fn (string $name) => ['name' => $name], unseen(3));
        expect(Tag::upsert($rows, ['name'], ['name']), 3);
    }),
    'first_or_create_miss' => connected(first_or_create(1)),
    'lock_for_update' => connected(in_transaction(function (): void {
        expect(Account::lockForUpdate()->find(311)->id, 311);
    })),
    'chunk_by_id_50' => connected(portions(...)),
    'cursor_200' => connected(function (): void {
        expect(Item::orderBy('id')->cursor()->count(), TABLE_ROWS);
    }),
    'n_plus_one_10' => connected(fn () => expect_books(Author::orderBy('id')->take(LOOP_COUNT)->get())),
    'eager_10' => connected(fn () => expect_books(Author::with('books')->orderBy('id')->take(LOOP_COUNT)->get())),

    'bad_OT001' => connected(all_books()),
    'fixed_OT001' => connected(all_books('books')),
    'bad_OT002' => connected(in_transaction(insert_each(...))),
    'fixed_OT002' => connected(in_transaction(fn () => insert_all())),
    'bad_OT002_update' => connected(in_transaction(save_each(...))),
    'fixed_OT002_update' => connected(in_transaction(increment_all(...))),
    'bad_OT003' => connected(insert_each(...)),
    'fixed_OT003' => connected(fn () => insert_all()),
    'bad_OT005' => connected(in_transaction(repeat(10))),
    'fixed_OT005' => connected(in_transaction(repeat(1))),
    'bad_OT006' => connected(ten_transactions(...)),
    'fixed_OT006' => connected(selects(10, 7)),
    'bad_OT007' => connected(selects(10, 7)),
    'fixed_OT007' => connected(selects(10, 7), EMULATED),
    'bad_OT008' => connected(ten_connections(...)),
    'fixed_OT008' => connected(selects(10, 7)),
    'bad_OT009' => connected(balance_of_each(...)),
    'fixed_OT009' => connected(balance_of_all(...)),
    'bad_OT011' => connected(requests(ping(...))),
    'bad_OT011_set' => connected(requests(isolation(...))),
    'fixed_OT011' => connected(requests(fn () => null)),
    'fixed_OT011_set' => connected(requests(fn () => null), ['isolation_level' => 'READ COMMITTED']),
    'bad_OT012' => connected(pages_by_three(...)),
    'fixed_OT012' => connected(pages_by_one(...)),
    'bad_OT013' => connected(in_transaction(lock_then_save(...))),
    'fixed_OT013' => connected(in_transaction(increment_each(...))),
    'bad_OT015' => connected(in_transaction(first_or_create(FEW))),
    'fixed_OT015' => connected(in_transaction(insert_or_ignore(...))),
    'bad_OT016' => connected(ten_times(read_then_roll_back(...))),
    'fixed_OT016' => connected(ten_times(two_reads(...))),

    'trap_chain' => connected(chain(...)),
    'trap_two_of_each' => connected(two_of_each(...)),
    'trap_portions' => connected(portions(...)),
]);
