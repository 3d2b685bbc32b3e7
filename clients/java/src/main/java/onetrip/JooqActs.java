package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.BOOKS_PER_AUTHOR;
import static onetrip.Acts.FEW;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.Acts.unseen;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.multiset;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.row;
import static org.jooq.impl.DSL.select;
import static org.jooq.impl.DSL.table;

import java.sql.Connection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import onetrip.Acts.Act;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.Record1;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.UpdateConditionStep;
import org.jooq.impl.DSL;

/**
 * jOOQ over pgjdbc, with names as its generator makes them. Each fixed act does what jOOQ's advice says
 * (core/ledger/src/stacks/data).
 */
final class JooqActs {
  private static final Table<Record> AUTHORS = table(name("public", "authors"));
  private static final Field<Integer> AUTHORS_ID = column("authors", "id", Integer.class);
  private static final Field<String> AUTHORS_NAME = column("authors", "name", String.class);
  private static final Table<Record> BOOKS = table(name("public", "books"));
  private static final Field<Integer> BOOKS_AUTHOR = column("books", "author_id", Integer.class);
  private static final Field<String> BOOKS_TITLE = column("books", "title", String.class);
  private static final Table<Record> LOG = table(name("public", "log"));
  private static final Field<String> LOG_MESSAGE = column("log", "message", String.class);
  private static final Table<Record> ACCOUNTS = table(name("public", "accounts"));
  private static final Field<Integer> ACCOUNTS_ID = column("accounts", "id", Integer.class);
  private static final Field<Integer> BALANCE = column("accounts", "balance", Integer.class);
  private static final Table<Record> TAGS = table(name("public", "tags"));
  private static final Field<String> TAGS_NAME = column("tags", "name", String.class);

  private JooqActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = new LinkedHashMap<>();
    acts.put("bad_OT001", inTransaction(JooqActs::booksOfEach));
    acts.put("fixed_OT001", inTransaction(JooqActs::booksByMultiset));
    acts.put("fixed_OT001_groups", inTransaction(JooqActs::booksByGroups));
    acts.put("bad_OT002", inTransaction(JooqActs::insertEach));
    acts.put("fixed_OT002", inTransaction(JooqActs::insertAll));
    acts.put("bad_OT002_update", inTransaction(JooqActs::addOneToEach));
    acts.put("fixed_OT002_update", inTransaction(ctx ->
        expect(addOne(ctx, ids(FEW)).execute(), FEW)));
    acts.put("bad_OT003", connected(JooqActs::insertEach));
    acts.put("fixed_OT003", inTransaction(JooqActs::insertAll));
    acts.put("bad_OT005", inTransaction(ctx -> repeat(ctx, 10)));
    acts.put("fixed_OT005", inTransaction(ctx -> repeat(ctx, 1)));
    acts.put("bad_OT009", inTransaction(ctx -> ids(12).forEach(id ->
        expect(ctx.select(BALANCE).from(ACCOUNTS).where(ACCOUNTS_ID.eq(id)).fetch().size(), 1))));
    acts.put("fixed_OT009", inTransaction(ctx ->
        expect(ctx.select(BALANCE).from(ACCOUNTS).where(ACCOUNTS_ID.in(ids(12))).fetch().size(),
            12)));
    acts.put("bad_OT013", inTransaction(JooqActs::readThenWrite));
    acts.put("fixed_OT013", inTransaction(ctx -> ids(FEW).forEach(id ->
        expect(addOne(ctx, List.of(id)).returning(BALANCE).fetch().size(), 1))));
    acts.put("bad_OT015", inTransaction(JooqActs::lookUpThenInsert));
    acts.put("fixed_OT015", inTransaction(ctx -> unseen().subList(0, FEW).forEach(name ->
        ctx.insertInto(TAGS, TAGS_NAME).values(name).onConflictDoNothing().execute())));
    return acts;
  }

  private static <T> Field<T> column(String table, String column, Class<T> type) {
    return field(name("public", table, column), type);
  }

  private static Act connected(Consumer<DSLContext> work) {
    return () -> {
      System.setProperty("org.jooq.no-logo", "true");
      System.setProperty("org.jooq.no-tips", "true");
      try (Connection connection = Acts.connect()) {
        work.accept(DSL.using(connection, SQLDialect.POSTGRES));
      }
    };
  }

  private static Act inTransaction(Consumer<DSLContext> work) {
    return connected(ctx -> ctx.transaction(inner -> work.accept(inner.dsl())));
  }

  private static List<Integer> ids(int count) {
    return ACCOUNT_IDS.subList(0, count);
  }

  private static void booksOfEach(DSLContext ctx) {
    for (var author : ctx.select(AUTHORS_ID, AUTHORS_NAME).from(AUTHORS).orderBy(AUTHORS_ID).fetch()) {
      var books = ctx.select(BOOKS_TITLE).from(BOOKS).where(BOOKS_AUTHOR.eq(author.value1())).fetch();
      expect(books.size(), BOOKS_PER_AUTHOR);
    }
  }

  private static void booksByMultiset(DSLContext ctx) {
    var titles = multiset(select(BOOKS_TITLE).from(BOOKS).where(BOOKS_AUTHOR.eq(AUTHORS_ID)));
    var authors = ctx.select(AUTHORS_NAME, titles).from(AUTHORS).fetch();
    expect(authors.size(), AUTHOR_COUNT);
    authors.forEach(author -> expect(author.value2().size(), BOOKS_PER_AUTHOR));
  }

  private static void booksByGroups(DSLContext ctx) {
    var groups = ctx.select(AUTHORS_ID, BOOKS_TITLE).from(AUTHORS)
        .join(BOOKS).on(BOOKS_AUTHOR.eq(AUTHORS_ID)).fetchGroups(AUTHORS_ID, BOOKS_TITLE);
    expect(groups.size(), AUTHOR_COUNT);
  }

  private static void insertEach(DSLContext ctx) {
    messages(FEW).forEach(text -> ctx.insertInto(LOG, LOG_MESSAGE).values(text).execute());
  }

  private static void insertAll(DSLContext ctx) {
    var rows = messages(FEW).stream().map(text -> row(text)).toList();
    expect(ctx.insertInto(LOG, LOG_MESSAGE).valuesOfRows(rows).execute(), FEW);
  }

  private static void addOneToEach(DSLContext ctx) {
    var accounts = ctx.select(ACCOUNTS_ID, BALANCE).from(ACCOUNTS).orderBy(ACCOUNTS_ID).limit(FEW);
    for (var account : accounts.fetch()) {
      write(ctx, account.value1(), account.value2() + 1);
    }
  }

  private static void write(DSLContext ctx, int id, int balance) {
    expect(ctx.update(ACCOUNTS).set(BALANCE, balance).where(ACCOUNTS_ID.eq(id)).execute(), 1);
  }

  private static UpdateConditionStep<Record> addOne(DSLContext ctx, List<Integer> ids) {
    return ctx.update(ACCOUNTS).set(BALANCE, BALANCE.plus(1)).where(ACCOUNTS_ID.in(ids));
  }

  private static void repeat(DSLContext ctx, int times) {
    for (int i = 0; i < times; i++) {
      Record1<String> author =
          ctx.select(AUTHORS_NAME).from(AUTHORS).where(AUTHORS_ID.eq(140)).fetchOne();
      expect(author.value1(), "author 140");
    }
  }

  private static void readThenWrite(DSLContext ctx) {
    for (int id : ids(FEW)) {
      int balance = ctx.select(BALANCE).from(ACCOUNTS).where(ACCOUNTS_ID.eq(id)).forUpdate()
          .fetchSingle().value1();
      write(ctx, id, balance + 1);
    }
  }

  private static void lookUpThenInsert(DSLContext ctx) {
    for (String tag : unseen().subList(0, FEW)) {
      if (ctx.select(TAGS_NAME).from(TAGS).where(TAGS_NAME.eq(tag)).fetchOne() == null) {
        ctx.insertInto(TAGS, TAGS_NAME).values(tag).execute();
      }
    }
  }
}
