import { expect, test } from 'bun:test'
import { join } from 'node:path'

const daemon = join(import.meta.dir, '../../src/cosi/daemon.ts')

/** What a daemon prints that throws what nobody handles, receives SIGTERM, and ends when its signal is aborted. */
function run(verbose: boolean): { code: number; lines: string[] } {
  const program = `
    const { startDaemon } = await import(${JSON.stringify(daemon)})
    const { log, signal } = startDaemon({ verbose: ${verbose} })
    log.debug('detail')
    Promise.reject(new Error('nobody took it'))
    setTimeout(() => process.kill(process.pid, 'SIGTERM'))
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    log.info('stopped')`
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, '-e', program])
  return { code: exitCode, lines: stderr.toString().trimEnd().split('\n') }
}

test('a daemon survives unhandled errors and ends by its signal', () => {
  const { code, lines } = run(false)
  expect(code).toBe(0)
  expect(lines.some((line) => line.includes('unexpected error') && line.includes('nobody took it'))).toBe(true)
  expect(lines.at(-1)).toContain('stopped')
  expect(lines.some((line) => line.includes('detail'))).toBe(false)
})

test('details are logged on request', () => {
  expect(run(true).lines.some((line) => line.includes('detail'))).toBe(true)
})

const flags = (...args: string[]) => {
  const program = `
    const { daemonFlags } = await import(${JSON.stringify(daemon)})
    const options = { listen: { type: 'string', default: ':1' }, verbose: { type: 'boolean', default: false } }
    console.log(JSON.stringify(daemonFlags({ name: 'd', usage: 'usage: d', options }, ${JSON.stringify(args)}) ?? 'none'))`
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', program])
  return [JSON.parse(stdout.toString()), stderr.toString()]
}

test('flags have their defaults, and those of nobody are refused with the usage', () => {
  expect(flags('--verbose')).toEqual([{ listen: ':1', verbose: true }, ''])
  const [parsed, reason] = flags('--port', '1')
  expect(parsed).toBe('none')
  expect(reason).toMatch(/^d: .*--port.*\nusage: d\n$/s)
})
