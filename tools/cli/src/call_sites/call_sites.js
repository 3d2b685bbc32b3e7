'use strict'
// Tells `onetrip run` which line of a Node program sends each statement. NODE_OPTIONS makes Node require this file first. The
// lines, and what they mean, are those of onetrip_call_sites.py. The calls of `pg` (node-postgres) are watched; what goes between
// client and database stays the same. Whatever fails here ends the telling, not the program; old versions of Node read it, too.

const Module = require('module')
const net = require('net')
const path = require('path')

const FRAMES_MAX = 5
const FRAME_LENGTH_MAX = 200
const DEPTH_MAX = 100
// What is not yet told goes out after so many lines, or so long after the first of them.
const LINES_MAX = 64
const QUIET_MS = 50
// What waits for a socket that takes nothing, at most.
const WAITING_MAX = 100000

let lines = []
let timer
const sites = new Map()
const numbers = new WeakMap()
let connections = 0

let failed = false
let socket

function flush() {
  clearTimeout(timer)
  timer = undefined
  if (lines.length === 0 || failed) return
  socket.write(lines.join(''))
  lines = []
}

function say(line) {
  if (failed || lines.length >= WAITING_MAX) return
  lines.push(line)
  if (lines.length >= LINES_MAX) flush()
  else if (timer === undefined) timer = setTimeout(flush, QUIET_MS).unref()
}

function tell(kind, connection, begun, site) {
  const ended = process.hrtime.bigint()
  if (site === undefined && kind !== 'open') return
  let number = '-'
  if (site !== undefined) {
    number = sites.get(site)
    if (number === undefined) {
      number = sites.size
      sites.set(site, number)
      say(`site ${number} ${site}\n`)
    }
  }
  say(`${kind} ${connection} ${begun} ${ended} ${number}\n`)
}

// The program's frames as JSON, the innermost first; undefined where none is the program's own.
function siteHere() {
  const { prepareStackTrace, stackTraceLimit } = Error
  let frames
  try {
    Error.stackTraceLimit = DEPTH_MAX
    Error.prepareStackTrace = (_, calls) => calls
    frames = new Error().stack
  } finally {
    Error.prepareStackTrace = prepareStackTrace
    Error.stackTraceLimit = stackTraceLimit
  }
  if (!Array.isArray(frames)) return undefined
  const own = []
  for (const frame of frames) {
    const file = (frame.getFileName() || '').replace(/^file:\/\//, '')
    if (!file || file === __filename || file.startsWith('node:') || file.includes(`node_modules${path.sep}`)) continue
    const relative = path.relative(process.cwd(), file)
    const name = frame.getFunctionName()
    const shown = `${relative.startsWith('..') ? file : relative}:${frame.getLineNumber()}${name ? ` in ${name}` : ''}`
    own.push(shown.slice(-FRAME_LENGTH_MAX))
    if (own.length === FRAMES_MAX) break
  }
  return own.length > 0 ? JSON.stringify(own) : undefined
}

// A query is under way from when it is submitted to its end: what waits in the client's queue has sent nothing yet.
function watch(query, client, site) {
  const { submit } = query
  let begun = process.hrtime.bigint()
  let isOver = false
  const over = (method) => {
    const original = query[method]
    if (typeof original !== 'function') return
    query[method] = function (...given) {
      if (!isOver) {
        isOver = true
        tell('call', numbers.get(client), begun, site)
      }
      return original.apply(this, given)
    }
  }
  over('handleReadyForQuery')
  over('handleError')
  query.submit = function (...given) {
    begun = process.hrtime.bigint()
    return submit.apply(this, given)
  }
}

function patch(pg) {
  const { prototype } = pg.Client
  const { connect, _pulseQueryQueue: pulse, query } = prototype
  if (typeof pulse !== 'function' || '_onetrip' in prototype) return
  Object.defineProperty(prototype, '_onetrip', { value: true })
  prototype.connect = function (...given) {
    const [begun, site, number] = [process.hrtime.bigint(), siteHere(), connections++]
    numbers.set(this, number)
    this.once('connect', () => tell('open', number, begun, site))
    return connect.apply(this, given)
  }
  // A pool asks when it has a client, which may be later: it hands on where it was asked.
  let handed
  const inherited = pg.Pool && pg.Pool.prototype.query
  if (typeof inherited === 'function') {
    pg.Pool.prototype.query = function (...given) {
      const [pool, site] = [this, siteHere()]
      const asking = Object.create(pool, {
        connect: {
          value: (done) =>
            pool.connect((...answer) => {
              const before = handed
              handed = site
              try {
                return done(...answer)
              } finally {
                handed = before
              }
            })
        }
      })
      return inherited.apply(asking, given)
    }
  }
  // `query` puts what it makes of its arguments into the queue, and the queue is looked at.
  let asking
  prototype.query = function (...given) {
    const before = asking
    asking = handed === undefined ? siteHere() : handed
    try {
      return query.apply(this, given)
    } finally {
      asking = before
    }
  }
  prototype._pulseQueryQueue = function (...given) {
    const queue = this._queryQueue || this.queryQueue || []
    const last = queue[queue.length - 1]
    if (asking !== undefined && last && typeof last.submit === 'function') {
      watch(last, this, asking)
      asking = undefined
    }
    return pulse.apply(this, given)
  }
}

function begin(place) {
  socket = net.connect(place)
  socket.on('error', () => {
    failed = true
    lines = []
  })
  socket.unref()
  process.on('exit', flush)
  const { _load: load } = Module
  Module._load = function (request, ...given) {
    const loaded = load.call(this, request, ...given)
    if (request === 'pg' || /node_modules[\\/]pg[\\/]lib[\\/]index\.js$/.test(request)) {
      try {
        patch(loaded)
      } catch (_) {
        // another version than is known here
      }
    }
    return loaded
  }
}

if (process.env.ONETRIP_CALLS) begin(process.env.ONETRIP_CALLS)
