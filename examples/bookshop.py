"""A small program as many are: it lists authors, asks for the books of each, and logs what it did row by row."""

import psycopg

AUTHORS = 40


def prepare(connection: psycopg.Connection) -> None:
    # A schema of its own, made anew: whoever has tables of these names keeps them.
    schema = "DROP SCHEMA IF EXISTS bookshop CASCADE; CREATE SCHEMA bookshop; SET search_path = bookshop; "
    connection.execute(schema + "CREATE TABLE authors (id int PRIMARY KEY, name text)")
    connection.execute("CREATE TABLE books (id int PRIMARY KEY, author_id int, title text)")
    connection.execute("CREATE TABLE visits (author_id int, books int)")
    connection.execute("INSERT INTO authors SELECT 101 + 7 * n, 'Author ' || n FROM generate_series(1, %s) n", [AUTHORS])
    connection.execute("INSERT INTO books SELECT n, 101 + 7 * (n %% %s + 1), 'Book ' || n FROM generate_series(1, 400) n", [AUTHORS])


def main() -> None:
    with psycopg.connect(autocommit=True) as connection:
        prepare(connection)
        counts = {}
        for author, _name in connection.execute("SELECT id, name FROM authors ORDER BY id").fetchall():
            titles = connection.execute("SELECT title FROM books WHERE author_id = %s", [author]).fetchall()
            counts[author] = len(titles)
        for author, books in counts.items():
            connection.execute("INSERT INTO visits (author_id, books) VALUES (%s, %s)", [author, books])
        print(f"{sum(counts.values())} books by {len(counts)} authors")


main()
