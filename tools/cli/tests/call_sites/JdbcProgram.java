import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.PGConnection;

public class JdbcProgram {
    static Connection open() throws SQLException {
        var url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        return DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD")); // OT008
    }

    static void titles(Connection connection, int author) throws SQLException {
        try (var statement = connection.prepareStatement("SELECT title FROM book WHERE author_id = ?")) {
            statement.setInt(1, author);
            try (ResultSet books = statement.executeQuery()) { // OT001
                while (books.next()) books.getString(1);
            }
        }
    }

    static void loops(Connection connection) throws SQLException {
        List<Integer> authors = new ArrayList<>();
        try (var statement = connection.createStatement();
                var rows = statement.executeQuery("SELECT id FROM author ORDER BY id")) {
            while (rows.next()) authors.add(rows.getInt(1));
        }
        authors.forEach(author -> {
            try {
                titles(connection, author);
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
        });
        connection.setAutoCommit(false);
        try (var statement = connection.createStatement()) {
            statement.setFetchSize(10);
            var pieces = statement.executeQuery("SELECT id FROM book ORDER BY id"); // OT004
            while (pieces.next()) {}
        }
        connection.commit();
        try (var statement = connection.prepareStatement("INSERT INTO note (body) VALUES (?)")) {
            for (int note = 0; note < 20; note++) {
                statement.setString(1, "note " + note);
                statement.executeUpdate(); // OT002
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    public static void main(String[] arguments) throws Exception {
        try (var connection = open()) {
            // The driver's own classes are there, as without.
            if (((PGConnection) connection).getBackendPID() == 0) throw new AssertionError();
            loops(connection);
        }
        for (int times = 0; times < 6; times++) {
            try (var connection = open();
                    var statement = connection.createStatement()) {
                statement.execute("SELECT 1");
            }
        }
    }
}
