package onetrip;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;

/** pgjdbc: a result of 3,600 rows walked ten at a time, which takes 361 trips. */
final class CursorWalk {
  private static final int ROWS = 3600;

  private CursorWalk() {}

  public static void main(String[] arguments) throws Exception {
    int rows = 0;
    try (Connection connection = DriverManager.getConnection(Acts.url(), Acts.login())) {
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.setFetchSize(10);
        try (ResultSet result = statement.executeQuery("SELECT person, amount FROM pay")) {
          while (result.next()) {
            rows++;
          }
        }
      }
      connection.commit();
    }
    if (rows != ROWS) {
      throw new IllegalStateException(rows + " rows, " + ROWS + " expected");
    }
  }
}
