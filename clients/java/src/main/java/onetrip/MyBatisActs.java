package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.BOOKS_PER_AUTHOR;
import static onetrip.Acts.FEW;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.Acts.unseen;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import onetrip.Acts.Act;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Many;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Result;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.annotations.Update;
import org.apache.ibatis.datasource.unpooled.UnpooledDataSource;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

/**
 * MyBatis over pgjdbc. The programmer writes each statement, so that pgjdbc is what reports name, and pgjdbc's advice is
 * what each fixed act does (core/ledger/src/stacks/data).
 */
final class MyBatisActs {
  private MyBatisActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = new LinkedHashMap<>();
    acts.put("bad_OT001", inTransaction(tables -> expectBooks(tables.authors())));
    acts.put("fixed_OT001", inTransaction(tables -> {
      Integer[] ids = tables.authorIds().toArray(Integer[]::new);
      expect(tables.booksOfAll(ids).size(), AUTHOR_COUNT * BOOKS_PER_AUTHOR);
    }));
    acts.put("bad_OT002", inTransaction(MyBatisActs::insertEach));
    acts.put("fixed_OT002", inBatch(MyBatisActs::insertEach));
    acts.put("bad_OT002_update", inTransaction(MyBatisActs::updateEach));
    acts.put("fixed_OT002_update", inBatch(MyBatisActs::updateEach));
    acts.put("bad_OT003", () -> {
      try (SqlSession session = factory().openSession(true)) {
        insertEach(session.getMapper(Tables.class));
      }
    });
    acts.put("fixed_OT003", inBatch(MyBatisActs::insertEach));
    acts.put("bad_OT009", inTransaction(tables ->
        ids(12).forEach(id -> expect(tables.balance(id) > 0, true))));
    acts.put("fixed_OT009", inTransaction(tables ->
        expect(tables.balances(ids(12).toArray(Integer[]::new)).size(), 12)));
    acts.put("bad_OT013", inTransaction(tables -> ids(FEW).forEach(id ->
        tables.write(id, tables.lockedBalance(id) + 1))));
    acts.put("fixed_OT013", inTransaction(tables -> ids(FEW).forEach(id ->
        expect(tables.addOneReturning(id) > 0, true))));
    acts.put("bad_OT015", inTransaction(tables -> unseen().subList(0, FEW).forEach(name -> {
      if (tables.tag(name) == null) {
        tables.insertTag(name);
      }
    })));
    acts.put("fixed_OT015", inTransaction(tables ->
        unseen().subList(0, FEW).forEach(tables::insertTagUnlessThere)));
    return acts;
  }

  public static final class Author {
    public int id;
    public String name;
    public List<String> titles;
  }

  /** The statements. */
  public interface Tables {
    @Select("SELECT id, name FROM authors ORDER BY id")
    @Result(property = "id", column = "id")
    @Result(property = "titles", column = "id", many = @Many(select = "titlesOf"))
    List<Author> authors();

    @Select("SELECT title FROM books WHERE author_id = #{id}")
    List<String> titlesOf(int id);

    @Select("SELECT id FROM authors ORDER BY id")
    List<Integer> authorIds();

    @Select("SELECT title FROM books"
        + " WHERE author_id = ANY(#{ids,typeHandler=org.apache.ibatis.type.ArrayTypeHandler})")
    List<String> booksOfAll(@Param("ids") Integer[] ids);

    @Insert("INSERT INTO log (message) VALUES (#{message})")
    void insertLog(String message);

    @Update("UPDATE accounts SET balance = balance + 1 WHERE id = #{id}")
    void addOne(int id);

    @Select(value = "UPDATE accounts SET balance = balance + 1 WHERE id = #{id} RETURNING balance",
        affectData = true)
    int addOneReturning(int id);

    @Select("SELECT balance FROM accounts WHERE id = #{id}")
    int balance(int id);

    @Select("SELECT balance FROM accounts"
        + " WHERE id = ANY(#{ids,typeHandler=org.apache.ibatis.type.ArrayTypeHandler})")
    List<Integer> balances(@Param("ids") Integer[] ids);

    @Select("SELECT balance FROM accounts WHERE id = #{id} FOR UPDATE")
    int lockedBalance(int id);

    @Update("UPDATE accounts SET balance = #{balance} WHERE id = #{id}")
    void write(@Param("id") int id,
        @Param("balance") int balance);

    @Select("SELECT id FROM tags WHERE name = #{name}")
    Long tag(String name);

    @Insert("INSERT INTO tags (name) VALUES (#{name})")
    void insertTag(String name);

    @Insert("INSERT INTO tags (name) VALUES (#{name}) ON CONFLICT DO NOTHING")
    void insertTagUnlessThere(String name);
  }

  private static SqlSessionFactory factory() {
    String url = Acts.url() + "?reWriteBatchedInserts=true";
    UnpooledDataSource source = new UnpooledDataSource("org.postgresql.Driver", url, Acts.login());
    Configuration configuration =
        new Configuration(new Environment("acts", new JdbcTransactionFactory(), source));
    configuration.addMapper(Tables.class);
    return new SqlSessionFactoryBuilder().build(configuration);
  }

  private static Act inTransaction(Consumer<Tables> work) {
    return in(ExecutorType.SIMPLE, work);
  }

  /** Statements are sent by addBatch() and executeBatch(). */
  private static Act inBatch(Consumer<Tables> work) {
    return in(ExecutorType.BATCH, work);
  }

  private static Act in(ExecutorType type, Consumer<Tables> work) {
    return () -> {
      try (SqlSession session = factory().openSession(type)) {
        work.accept(session.getMapper(Tables.class));
        session.flushStatements();
        session.commit(true);
      }
    };
  }

  private static List<Integer> ids(int count) {
    return ACCOUNT_IDS.subList(0, count);
  }

  private static void insertEach(Tables tables) {
    messages(FEW).forEach(tables::insertLog);
  }

  private static void updateEach(Tables tables) {
    ids(FEW).forEach(tables::addOne);
  }

  private static void expectBooks(List<Author> authors) {
    expect(authors.size(), AUTHOR_COUNT);
    authors.forEach(author -> expect(author.titles.size(), BOOKS_PER_AUTHOR));
  }
}
