import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;

/** The lab's values from Derby's client: DerbyLab number|characters N SESSION. */
public final class DerbyLab {
    public static void main(String[] arguments) throws Exception {
        boolean number = arguments[0].equals("number");
        int count = Integer.parseInt(arguments[1]);
        String text = number ? "VALUES (1)" : "VALUES CAST('" + "x".repeat(100) + "' AS VARCHAR(100))";
        String url = "jdbc:derby://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/memory:lab;create=true";
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Connection connection = DriverManager.getConnection(url); PreparedStatement statement = connection.prepareStatement(text)) {
            while (lines.readLine() != null) {
                long began = System.nanoTime();
                long used = cpu();
                long rows = 0;
                for (int n = 0; n < count; n++) {
                    try (ResultSet found = statement.executeQuery()) {
                        while (found.next()) {
                            rows += (number ? found.getInt(1) : found.getString(1).length() / 100);
                        }
                    }
                }
                System.out.printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}%n", rows, System.nanoTime() - began, cpu() - used);
            }
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
