import { describe, expect, test } from 'bun:test'
import { ProgramFailed, type ProgramOptions, runProgram } from '../../src/supervise/run-program.ts'
import { type Spawn, spawn } from '../../src/supervise/spawn.ts'

const shell = (script: string, options: Partial<ProgramOptions> = {}) =>
  runProgram({ spawn }, ['/bin/sh', '-c', script], { timeout: 60_000, purpose: 'try', ...options })

const failure = async (run: Promise<string>): Promise<ProgramFailed> => {
  const error = await run.then(
    () => undefined,
    (error) => error,
  )
  expect(error).toBeInstanceOf(ProgramFailed)
  return error
}

describe('a program', () => {
  test('that succeeds resolves to its output, both streams', async () => {
    expect(await shell('echo out; echo err >&2')).toBe('out\n\nerr\n')
  })

  test('that fails is named with its exit code and the lines that state why', async () => {
    const { message, status } = await failure(shell('echo working; echo "Error: no such thing" >&2; exit 3'))
    expect(message).toBe('try: exit code 3: Error: no such thing')
    expect(status).toEqual({ code: 3, signal: null })
  })

  test('may succeed with other exit codes', async () => {
    expect(await shell('exit 1', { accept: [1] })).toBe('\n')
    expect((await failure(shell('exit 2', { accept: [1] }))).status.code).toBe(2)
  })

  test('without a purpose is named by its command line', async () => {
    expect((await failure(runProgram({ spawn }, ['/bin/false'], { timeout: 60_000 }))).message).toBe('/bin/false: exit code 1')
  })

  test('that does not end in time is killed', async () => {
    const { message, timedOut, status } = await failure(shell('echo begun; exec sleep 600', { timeout: 200 }))
    expect([timedOut, status.signal]).toEqual([true, 'SIGKILL'])
    expect(message).toBe('try: no end in time: begun')
  })

  test('is killed when the caller gives up, with the reason of the caller', async () => {
    const abort = new AbortController()
    let killed = false
    const watched: Spawn = (command) => {
      const child = spawn(command)
      child.exited.then(({ signal }) => {
        killed = signal === 'SIGKILL'
      })
      return child
    }
    const run = runProgram({ spawn: watched }, ['/bin/sleep', '600'], { timeout: 60_000, signal: abort.signal })
    abort.abort(new Error('no longer needed'))
    await expect(run).rejects.toThrow('no longer needed')
    expect(killed).toBe(true)
    await expect(shell('exit 0', { signal: abort.signal })).rejects.toThrow('no longer needed')
  })

  test('keeps the end of a long output only', async () => {
    const output = await shell('yes 0123456789 | head -c 1000000; echo the end')
    expect(output.length).toBeLessThan(70_000)
    expect(output).toEndWith('the end\n\n')
  })

  test('has ended although a process that it left behind holds its output open', async () => {
    expect(await shell('sleep 3 & echo done')).toBe('done\n\n')
  })
})
