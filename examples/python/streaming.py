"""A result in pieces: DECLARE and the first FETCH are one trip, each further piece is one."""

import onetrip
from onetrip import rows

with onetrip.connect() as connection, connection.cursor("days", row_factory=rows.namedtuple_row) as cursor:
    cursor.itersize = 100
    cursor.execute("SELECT d::date AS day FROM generate_series('2024-01-01'::date, '2024-12-31', '1 day') d")
    print(sum(row.day.day == 13 and row.day.weekday() == 4 for row in cursor), connection.trips)
