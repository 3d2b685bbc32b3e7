import java.sql.DriverManager;
import java.util.Properties;

/** pgJDBC with its database in the code: the arguments are HOST PORT. */
public class Redirect {
    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.setProperty("user", "onetrip");
        settings.setProperty("password", "onetrip-secret");
        var url = "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/postgres";
        try (var connection = DriverManager.getConnection(url, settings);
                var rows = connection.createStatement().executeQuery("SELECT 41 + 1")) {
            rows.next();
            System.out.println(rows.getInt(1));
        }
    }
}
