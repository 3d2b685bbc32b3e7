import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.StringJoiner;

/** A result of pgjdbc read in pieces: {@code Cursors.java narrow|wide ROWS}, so many rows each time. */
public final class Cursors {
  private Cursors() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2 || !List.of("narrow", "wide").contains(arguments[0])) {
      System.err.println("usage: Cursors.java narrow|wide ROWS");
      System.exit(2);
    }
    Properties login = new Properties();
    login.setProperty("user", System.getenv("PGUSER"));
    login.setProperty("password", System.getenv().getOrDefault("PGPASSWORD", ""));
    String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
        + System.getenv("PGDATABASE");
    StringJoiner lines = new StringJoiner("\n");
    double milliseconds;
    try (Connection connection = DriverManager.getConnection(url, login)) {
      connection.setAutoCommit(false);
      long began = System.nanoTime();
      try (Statement statement = connection.createStatement()) {
        statement.setFetchSize(Integer.parseInt(arguments[1]));
        try (ResultSet rows = statement.executeQuery("SELECT id, text FROM " + arguments[0] + " ORDER BY id")) {
          while (rows.next()) {
            lines.add(rows.getInt(1) + " " + rows.getString(2));
          }
        }
      }
      connection.commit();
      milliseconds = (System.nanoTime() - began) / 1e6;
    }
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(lines.toString().getBytes(StandardCharsets.UTF_8));
    System.out.println(String.format(Locale.ROOT, "%.1f %s", milliseconds, HexFormat.of().formatHex(digest, 0, 8)));
  }
}
