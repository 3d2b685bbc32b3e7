// Acts of Drizzle, over node-postgres.
import assert from 'node:assert/strict'
import { asc, eq, inArray, relations, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { bigserial, integer, numeric, pgTable, text } from 'drizzle-orm/pg-core'
import pg from 'pg'
import * as shared from './mappers.js'

const { ACCOUNT_IDS, BOOKS_PER_AUTHOR, FEW, FEW_IDS } = shared

const authors = pgTable('authors', { id: integer().primaryKey(), name: text().notNull() })
const books = pgTable('books', {
  id: integer().primaryKey(),
  authorId: integer('author_id').references(() => authors.id),
  title: text().notNull(),
  price: numeric().notNull(),
})
const log = pgTable('log', { id: bigserial({ mode: 'number' }).primaryKey(), message: text().notNull() })
const accounts = pgTable('accounts', { id: integer().primaryKey(), balance: integer().notNull() })
const tags = pgTable('tags', { id: bigserial({ mode: 'number' }).primaryKey(), name: text().notNull().unique() })
const authorsRelations = relations(authors, ({ many }) => ({ books: many(books) }))
const booksRelations = relations(books, ({ one }) => ({
  author: one(authors, { fields: [books.authorId], references: [authors.id] }),
}))

const pool = new pg.Pool({ max: 1 })
const db = drizzle(pool, { schema: { authors, books, authorsRelations, booksRelations } })

const inTransaction = (work) => () => db.transaction(work)

const insertEach = async (on) => {
  for (const row of shared.logRows()) await on.insert(log).values(row)
}

const insertAll = (on) => on.insert(log).values(shared.logRows())

const repeat = (count) => (tx) =>
  shared.times(count, async () => {
    const [author] = await tx.select().from(authors).where(eq(authors.id, 140))
    assert.equal(author.name, 'author 140')
  })

const addOne = (tx) => tx.update(accounts).set({ balance: sql`${accounts.balance} + 1` })

const acts = {
  bad_OT001: async () => {
    for (const author of await db.select().from(authors).orderBy(asc(authors.id))) {
      const own = await db.select().from(books).where(eq(books.authorId, author.id))
      assert.equal(own.length, BOOKS_PER_AUTHOR)
    }
  },
  fixed_OT001: async () => shared.expectBooks(await db.query.authors.findMany({ with: { books: true } })),
  fixed_OT001_join: async () => {
    const rows = await db.select().from(authors).leftJoin(books, eq(books.authorId, authors.id))
    assert.equal(rows.length, shared.AUTHOR_COUNT * BOOKS_PER_AUTHOR)
  },
  bad_OT002: inTransaction(insertEach),
  fixed_OT002: inTransaction(insertAll),
  bad_OT002_update: inTransaction(async (tx) => {
    for (const { id, balance } of await tx.select().from(accounts).orderBy(asc(accounts.id)).limit(FEW)) {
      await tx.update(accounts).set({ balance: balance + 1 }).where(eq(accounts.id, id))
    }
  }),
  fixed_OT002_update: inTransaction((tx) => addOne(tx).where(inArray(accounts.id, FEW_IDS))),
  bad_OT003: () => insertEach(db),
  fixed_OT003: () => insertAll(db),
  bad_OT005: inTransaction(repeat(10)),
  fixed_OT005: inTransaction(repeat(1)),
  bad_OT009: async () => {
    for (const id of ACCOUNT_IDS) {
      assert.equal((await db.select().from(accounts).where(eq(accounts.id, id))).length, 1)
    }
  },
  fixed_OT009: async () => {
    const rows = await db.select().from(accounts).where(inArray(accounts.id, ACCOUNT_IDS))
    assert.equal(rows.length, ACCOUNT_IDS.length)
  },
  bad_OT013: inTransaction(async (tx) => {
    for (const id of FEW_IDS) {
      const [{ balance }] = await tx.select().from(accounts).where(eq(accounts.id, id)).for('update')
      await tx.update(accounts).set({ balance: balance + 1 }).where(eq(accounts.id, id))
    }
  }),
  fixed_OT013: inTransaction(async (tx) => {
    for (const id of FEW_IDS) {
      assert.equal((await addOne(tx).where(eq(accounts.id, id)).returning()).length, 1)
    }
  }),
  bad_OT015: inTransaction(async (tx) => {
    for (const row of shared.newTags()) {
      const found = await tx.select().from(tags).where(eq(tags.name, row.name))
      if (found.length === 0) await tx.insert(tags).values(row)
    }
  }),
  fixed_OT015: inTransaction(async (tx) => {
    for (const row of shared.newTags()) await tx.insert(tags).values(row).onConflictDoNothing()
  }),
}

await shared.main(acts, () => pool.end())
