/** h2spec's suite against our HTTP/2: every case of the standard that it knows. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen, type ServerTls } from '../../src/rpc/http2/listen.ts'
import { identityOf } from '../programs/apid/nodes.ts'

setDefaultTimeout(300_000)

/** A server that answers every request when it is whole. */
function serve(tls?: ServerTls) {
  return listen(
    { host: '127.0.0.1', port: 0, ...(tls && { tls }) },
    {
      maxStreams: 100,
      welcome: () => ({
        request: (stream) =>
          stream.read({
            data: (piece) => stream.release(piece.length),
            end() {
              stream.respond({ ':status': 200, 'content-type': 'text/plain' })
              stream.write(Buffer.from('well '))
              stream.end(Buffer.from('done'))
            },
          }),
      }),
    },
  )
}

async function run(argv: string[], cwd?: string): Promise<{ code: number; output: string }> {
  const child = Bun.spawn(argv, { ...(cwd && { cwd }), env: { ...process.env, CGO_ENABLED: '0' }, stderr: 'pipe' })
  const [out, output] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, output: `${out}${output}` }
}

test('HTTP/2 conforms to the standard, without TLS and with it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-h2spec-'))
  const program = join(folder, 'h2spec')
  const { server: pair } = identityOf('127.0.0.1', 'worker')
  const [plain, secure] = [serve(), serve({ cert: pair.certificate, key: pair.key })]
  try {
    const built = await run(
      ['go', 'build', '-trimpath', '-o', program, 'github.com/summerwind/h2spec/cmd/h2spec'],
      join(import.meta.dir, 'h2spec'),
    )
    if (built.code !== 0) throw new Error(built.output)
    // A busy machine is slow, not wrong.
    const common = ['--timeout', '20', '--host', '127.0.0.1']
    for (const [server, flags] of [
      [plain, []],
      [secure, ['--tls', '--insecure']],
    ] as const) {
      const { output } = await run([program, ...common, ...flags, '--port', String(server.port)])
      const failures = output.slice(Math.max(0, output.indexOf('Failures')))
      expect(/(\d+) tests, (\d+) passed, 0 skipped, 0 failed/.test(output) ? '' : failures).toBe('')
    }
  } finally {
    await Promise.all([plain.close(), secure.close()])
    rmSync(folder, { recursive: true, force: true })
  }
})
