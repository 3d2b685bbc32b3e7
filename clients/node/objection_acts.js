// Acts of Objection, over Knex and node-postgres.
import assert from 'node:assert/strict'
import Knex from 'knex'
import { Model } from 'objection'
import * as shared from './mappers.js'

const { ACCOUNT_IDS, BOOKS_PER_AUTHOR, FEW, FEW_IDS, server } = shared

const knex = Knex({ client: 'pg', connection: server, pool: { min: 0, max: 1 } })
Model.knex(knex)

class Author extends Model {
  static tableName = 'authors'
  static relationMappings = () => ({
    books: { relation: Model.HasManyRelation, modelClass: Book, join: { from: 'authors.id', to: 'books.author_id' } },
  })
}
class Book extends Model {
  static tableName = 'books'
}
class Log extends Model {
  static tableName = 'log'
}
class Account extends Model {
  static tableName = 'accounts'
}
class Tag extends Model {
  static tableName = 'tags'
}

const inTransaction = (work) => () => Model.transaction(work)

const insertEach = async (trx) => {
  for (const row of shared.logRows()) await Log.query(trx).insert(row)
}

const insertAll = (trx) => Log.query(trx).insert(shared.logRows())

const repeat = (count) => (trx) =>
  shared.times(count, async () => {
    assert.equal((await Author.query(trx).findById(140)).name, 'author 140')
  })

const acts = {
  bad_OT001: async () => {
    for (const author of await Author.query().orderBy('id')) {
      assert.equal((await author.$relatedQuery('books')).length, BOOKS_PER_AUTHOR)
    }
  },
  fixed_OT001: async () => shared.expectBooks(await Author.query().withGraphFetched('books')),
  fixed_OT001_join: async () => shared.expectBooks(await Author.query().withGraphJoined('books')),
  bad_OT002: inTransaction(insertEach),
  fixed_OT002: inTransaction(insertAll),
  bad_OT002_update: inTransaction(async (trx) => {
    for (const account of await Account.query(trx).orderBy('id').limit(FEW)) {
      await account.$query(trx).patch({ balance: account.balance + 1 })
    }
  }),
  fixed_OT002_update: inTransaction(async (trx) => {
    assert.equal(await Account.query(trx).whereIn('id', FEW_IDS).increment('balance', 1), FEW)
  }),
  bad_OT003: () => insertEach(),
  fixed_OT003: () => insertAll(),
  bad_OT005: inTransaction(repeat(10)),
  fixed_OT005: inTransaction(repeat(1)),
  bad_OT009: async () => {
    for (const number of ACCOUNT_IDS) assert.ok(await Account.query().findById(number))
  },
  fixed_OT009: async () => {
    assert.equal((await Account.query().findByIds(ACCOUNT_IDS)).length, ACCOUNT_IDS.length)
  },
  bad_OT013: inTransaction(async (trx) => {
    for (const number of FEW_IDS) {
      const account = await Account.query(trx).findById(number).forUpdate()
      await account.$query(trx).patch({ balance: account.balance + 1 })
    }
  }),
  fixed_OT013: inTransaction(async (trx) => {
    for (const number of FEW_IDS) {
      assert.equal(await Account.query(trx).findById(number).increment('balance', 1), 1)
    }
  }),
  bad_OT015: inTransaction(async (trx) => {
    for (const row of shared.newTags()) {
      if (!(await Tag.query(trx).findOne(row))) await Tag.query(trx).insert(row)
    }
  }),
  fixed_OT015: inTransaction(async (trx) => {
    for (const row of shared.newTags()) await Tag.query(trx).insert(row).onConflict('name').ignore()
  }),
}

await shared.main(acts, () => knex.destroy())
