import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** The loop of the workload `loop` in MariaDB Connector/J: a list of employees, then a statement for the salaries of each. */
public final class MariadbLoop {
    public static void main(String[] arguments) throws IOException, SQLException {
        int employees = Integer.parseInt(arguments[0]);
        String url = "jdbc:mariadb://" + System.getenv("MYSQL_HOST") + ":" + System.getenv("MYSQL_TCP_PORT") + "/lab";
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Connection connection = DriverManager.getConnection(url, "root", null);
                PreparedStatement list = connection.prepareStatement("SELECT emp_no, name FROM employees ORDER BY emp_no");
                PreparedStatement salaries = connection.prepareStatement(
                    "SELECT emp_no, year, salary FROM salaries WHERE emp_no = ? ORDER BY year")) {
            while (lines.readLine() != null) {
                long began = System.nanoTime();
                long used = cpu();
                long rows = round(list, salaries, employees);
                System.out.printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}%n", rows, System.nanoTime() - began, cpu() - used);
            }
        }
    }

    private static long round(PreparedStatement list, PreparedStatement salaries, int employees) throws SQLException {
        List<Integer> numbers = new ArrayList<>();
        try (ResultSet found = list.executeQuery()) {
            while (found.next()) {
                numbers.add(found.getInt(1));
            }
        }
        long rows = numbers.size();
        for (int number : numbers.subList(0, Math.min(employees, numbers.size()))) {
            salaries.setInt(1, number);
            try (ResultSet found = salaries.executeQuery()) {
                while (found.next()) {
                    found.getInt(3);
                    rows++;
                }
            }
        }
        return rows;
    }

    /** CPU time of all threads, in nanoseconds. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
