import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Blob;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/**
 * Large objects read one by one with pgjdbc: {@code Lobs.java object|bytes|stream committed|repeatable COUNT}, in one
 * transaction of that level.
 */
public final class Lobs {
  private static final Map<String, Integer> LEVELS =
      Map.of("committed", Connection.TRANSACTION_READ_COMMITTED, "repeatable", Connection.TRANSACTION_REPEATABLE_READ);
  private static final int LENGTH = 4000;

  private Lobs() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 3 || !LEVELS.containsKey(arguments[1])) {
      System.err.println("usage: Lobs.java object|bytes|stream committed|repeatable COUNT");
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
      connection.setTransactionIsolation(LEVELS.get(arguments[1]));
      long began = System.nanoTime();
      try (Statement statement = connection.createStatement();
          ResultSet rows = statement.executeQuery(
              "SELECT id, object FROM lob ORDER BY id LIMIT " + Integer.parseInt(arguments[2]))) {
        while (rows.next()) {
          byte[] bytes = read(arguments[0], connection, rows);
          lines.add(rows.getInt(1) + " " + HexFormat.of().formatHex(digest(bytes)));
        }
      }
      connection.commit();
      milliseconds = (System.nanoTime() - began) / 1e6;
    }
    byte[] digest = digest(lines.toString().getBytes(StandardCharsets.UTF_8));
    System.out.println(String.format(Locale.ROOT, "%.1f %s", milliseconds, HexFormat.of().formatHex(digest, 0, 8)));
  }

  private static byte[] read(String way, Connection connection, ResultSet rows) throws SQLException, IOException {
    if (way.equals("object")) {
      LargeObjectManager manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
      LargeObject object = manager.open(rows.getLong(2), LargeObjectManager.READ);
      byte[] bytes = object.read(LENGTH);
      object.close();
      return bytes;
    }
    Blob blob = rows.getBlob(2);
    byte[] bytes;
    if (way.equals("bytes")) {
      bytes = blob.getBytes(1, LENGTH);
    } else {
      try (InputStream stream = blob.getBinaryStream()) {
        bytes = stream.readAllBytes();
      }
    }
    blob.free();
    return bytes;
  }

  private static byte[] digest(byte[] bytes) throws Exception {
    return MessageDigest.getInstance("SHA-256").digest(bytes);
  }
}
