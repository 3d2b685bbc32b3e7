"""Goes on after errors: every row that can be inserted is, and each refusal is known by its operation."""

from __future__ import annotations

import onetrip


def main() -> None:
    with onetrip.connect() as connection:
        connection.execute("CREATE TEMP TABLE word (word varchar(5) PRIMARY KEY)")
        words = ["one", "two", "one", "seventeen", "six"]
        with connection.pipeline(on_error="continue") as pipeline:
            operations = [pipeline.execute("INSERT INTO word VALUES (%s)", (word,)) for word in words]
        for word, operation in zip(words, operations, strict=True):
            try:
                operation.result()
            except onetrip.DatabaseError as error:
                print(f"{word}: {type(error).__name__}")
        print(connection.execute("SELECT count(*) FROM word").fetchone())


if __name__ == "__main__":
    main()
