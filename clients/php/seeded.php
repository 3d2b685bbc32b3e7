<?php

// What the acts of PHP share: `php PROGRAM.php ACT` runs one, `--list` names them.

declare(strict_types=1);

// What the seeded tables hold (clients/mysql/schema.sql).
const AUTHOR_COUNT = 12;
const BOOKS_PER_AUTHOR = 3;
const LOOP_COUNT = 10;
const TABLE_ROWS = 200;
const WRITE_ROWS = 20;
const ACCOUNT_IDS = [
    311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
    419, 423, 437, 446, 458, 469, 471, 483, 495, 502,
];
const PAGE_AUTHORS = [112, 140, 175, 203];
/** Rows that the acts of mappers write one by one: enough for each finding. */
const FEW = 8;

/** Fails the act: a wrong answer is not a cheap answer. */
function expect(mixed $actual, mixed $wanted): void
{
    if ($actual !== $wanted) {
        throw new UnexpectedValueException('got ' . var_export($actual, true) . ', wanted ' . var_export($wanted, true));
    }
}

/** @return list<string> */
function messages(int $count = WRITE_ROWS): array
{
    return array_map(fn (int $number) => "message $number", range(1, $count));
}

/**
 * Names that no row has.
 *
 * @return list<string>
 */
function unseen(int $count = WRITE_ROWS): array
{
    return array_map(fn () => 'unseen ' . bin2hex(random_bytes(16)), range(1, $count));
}

/**
 * Runs the act that the command line names.
 *
 * @param array<string, callable(): void> $acts
 */
function main(array $acts): never
{
    $name = $GLOBALS['argv'][1] ?? '';
    if ($name === '--list') {
        echo implode("\n", array_keys($acts)), "\n";
        exit(0);
    }
    if (!isset($acts[$name])) {
        fwrite(STDERR, 'usage: ' . implode('|', array_keys($acts)) . "\n");
        exit(2);
    }
    $acts[$name]();
    exit(0);
}
