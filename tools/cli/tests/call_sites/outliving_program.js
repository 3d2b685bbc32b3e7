// Leaves a process behind that starts another program when the run is over, and writes down how that ended.
const { spawn, spawnSync } = require('child_process')
const { writeFileSync } = require('fs')

const [, , file, role] = process.argv
if (role === 'left') {
  setTimeout(() => {
    const { status } = spawnSync(process.execPath, ['-e', '1'])
    writeFileSync(file, `exit code ${status}\n`)
  }, 2000)
} else {
  spawn(process.execPath, [__filename, file, 'left'], { detached: true, stdio: 'ignore' }).unref()
}
