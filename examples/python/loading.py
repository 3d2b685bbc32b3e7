"""Many rows at once, and which of them is refused."""

import onetrip

INSERT = "INSERT INTO reading (id, value) VALUES (%s, %s)"

with onetrip.connect() as connection:
    connection.execute("CREATE TEMP TABLE reading (id int PRIMARY KEY, value float8)")
    cursor = connection.cursor()
    cursor.executemany(INSERT, [(id, id / 10) for id in range(5000)])  # as arrays: two trips
    connection.commit()
    try:
        cursor.executemany(INSERT, [(5000, 1.5), (17, 2.5)], by="copy")  # by COPY: one
    except onetrip.IntegrityError as error:
        print(f"row {error.row}: {error.diag.message_detail}")
        connection.rollback()
    columns = cursor.execute("SELECT id, value FROM reading").fetch_numpy()
    print(columns["id"].max(), columns["value"].mean())
