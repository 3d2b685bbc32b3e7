// Acts of Sequelize, over node-postgres.
import assert from 'node:assert/strict'
import { DataTypes, Sequelize } from 'sequelize'
import * as shared from './mappers.js'

const { ACCOUNT_IDS, BOOKS_PER_AUTHOR, FEW, FEW_IDS, server } = shared

const sequelize = new Sequelize({
  ...server,
  username: server.user,
  dialect: 'postgres',
  logging: false,
  pool: { max: 1 },
  define: { timestamps: false },
})

const id = { type: DataTypes.INTEGER, primaryKey: true }
const serial = { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true }
const Author = sequelize.define('author', { id, name: DataTypes.TEXT }, { tableName: 'authors' })
const Book = sequelize.define('book', { id, title: DataTypes.TEXT, price: DataTypes.DECIMAL(8, 2) }, { tableName: 'books' })
const Log = sequelize.define('log', { id: serial, message: DataTypes.TEXT }, { tableName: 'log' })
const Account = sequelize.define('account', { id, balance: DataTypes.INTEGER }, { tableName: 'accounts' })
const Tag = sequelize.define('tag', { id: serial, name: DataTypes.TEXT }, { tableName: 'tags' })
Author.hasMany(Book, { foreignKey: 'author_id' })
Book.belongsTo(Author, { foreignKey: 'author_id' })

const inTransaction = (work) => () => sequelize.transaction((transaction) => work({ transaction }))

const insertEach = async (options) => {
  for (const row of shared.logRows()) await Log.create(row, options)
}

const insertAll = (options) => Log.bulkCreate(shared.logRows(), options)

const repeat = (count) => (options) =>
  shared.times(count, async () => {
    assert.equal((await Author.findByPk(140, options)).name, 'author 140')
  })

const acts = {
  bad_OT001: async () => {
    for (const author of await Author.findAll({ order: ['id'] })) {
      assert.equal((await author.getBooks()).length, BOOKS_PER_AUTHOR)
    }
  },
  fixed_OT001: async () => shared.expectBooks(await Author.findAll({ include: Book, order: ['id'] })),
  fixed_OT001_separate: async () => {
    shared.expectBooks(await Author.findAll({ include: { model: Book, separate: true }, order: ['id'] }))
  },
  bad_OT002: inTransaction(insertEach),
  fixed_OT002: inTransaction(insertAll),
  bad_OT002_update: inTransaction(async (options) => {
    for (const account of await Account.findAll({ order: ['id'], limit: FEW, ...options })) {
      account.balance += 1
      await account.save(options)
    }
  }),
  fixed_OT002_update: inTransaction(async (options) => {
    await Account.increment('balance', { by: 1, where: { id: FEW_IDS }, ...options })
  }),
  bad_OT003: () => insertEach({}),
  fixed_OT003: inTransaction(insertAll),
  bad_OT005: inTransaction(repeat(10)),
  fixed_OT005: inTransaction(repeat(1)),
  bad_OT009: async () => {
    for (const number of ACCOUNT_IDS) assert.ok(await Account.findByPk(number))
  },
  fixed_OT009: async () => {
    assert.equal((await Account.findAll({ where: { id: ACCOUNT_IDS } })).length, ACCOUNT_IDS.length)
  },
  bad_OT013: inTransaction(async (options) => {
    for (const number of FEW_IDS) {
      const account = await Account.findByPk(number, { ...options, lock: true })
      account.balance += 1
      await account.save(options)
    }
  }),
  fixed_OT013: inTransaction(async (options) => {
    for (const number of FEW_IDS) await Account.increment('balance', { by: 1, where: { id: number }, ...options })
  }),
  bad_OT015: inTransaction(async (options) => {
    for (const row of shared.newTags()) {
      if ((await Tag.findOne({ where: row, ...options })) === null) await Tag.create(row, options)
    }
  }),
  fixed_OT015: inTransaction(async (options) => {
    await Tag.bulkCreate(shared.newTags(), { ignoreDuplicates: true, ...options })
  }),
}

await shared.main(acts, () => sequelize.close())
