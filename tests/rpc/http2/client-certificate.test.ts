/** Certificates of clients: judged at every connection, while it lasts, and again when the authorities change. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newCA } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { dial } from '../../../src/rpc/client/dial.ts'
import { expired } from '../../../src/rpc/http2/client-certificate.ts'
import { listen } from '../../../src/rpc/http2/listen.ts'
import type { Session } from '../../../src/rpc/http2/session.ts'
import type { Stream } from '../../../src/rpc/http2/stream.ts'
import { authority, clientCertificate, identityOf } from '../../programs/apid/nodes.ts'

const day = 86_400_000
const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const { server: pair } = identityOf('127.0.0.1', 'worker')
const tls = { cert: pair.certificate, key: pair.key, clients: 'required' as const, ca: authority.crt }
const troubles: string[] = []
const listener = listen(
  { host: '127.0.0.1', port: 0, tls },
  {
    maxStreams: 10,
    welcome: () => ({ request: (stream: Stream) => stream.respond({ ':status': 200 }) }),
    trouble: (what) => troubles.push(what),
  },
)
const folder = mkdtempSync(join(tmpdir(), 'ichor-client-certificate-'))
afterAll(async () => {
  await listener.close()
  rmSync(folder, { recursive: true })
})

function connect(ca = authority): Promise<Session> {
  const { crt, key } = clientCertificate(['os:admin'], { ca })
  return dial({ address: `127.0.0.1:${listener.port}`, tls: { ca: authority.crt, cert: crt, key: tlsKey(key) } })
}

const closed = (session: Session) => new Promise<void>((resolve) => session.whenClosed(() => resolve()))

describe('an open connection', () => {
  test('is closed when its certificate has expired', async () => {
    const session = await connect()
    listener.judge()
    listener.judge(Date.now() + day / 2)
    expect(session.open).toBe(true)
    listener.judge(Date.now() + 2 * day)
    await closed(session)
    expect(troubles.at(-1)).toStartWith('connection closed: its certificate has expired')
  })

  test('is closed when the authority of its certificate is no longer accepted, and kept while it is', async () => {
    const session = await connect()
    await listener.renew({ ...tls, ca: `${twin.crt}\n${authority.crt}` })
    expect(session.open).toBe(true)
    const fresh = await connect(twin)
    await listener.renew({ ...tls, ca: twin.crt })
    await closed(session)
    expect(troubles.at(-1)).toBe('connection closed: its authority is no longer accepted')
    await new Promise<void>((resolve) => fresh.ping(resolve))
    expect(fresh.open).toBe(true)
    fresh.close()
    await listener.renew(tls)
  })
})

test('connections that wait to be accepted while certificates are renewed are accepted', async () => {
  const waiting = Array.from({ length: 20 }, () => connect())
  const renewals = Promise.all([listener.renew({ ...tls, ca: `${twin.crt}\n${authority.crt}` }), listener.renew(tls)])
  for (const session of await Promise.all(waiting)) session.close()
  await renewals
  const [renewed] = await Promise.all([connect(), listener.renew(tls)])
  renewed.close()
})

test('a certificate is valid between its dates, and never when they are unreadable', () => {
  const dates = { valid_from: 'Nov 23 06:30:30 2026 GMT', valid_to: 'Nov 24 06:30:30 2026 GMT' }
  expect(expired(dates, Date.parse('2026-11-23T07:00:00Z'))).toBeUndefined()
  expect(expired(dates, Date.parse('2026-11-23T06:30:29Z'))).toContain('not valid before')
  expect(expired(dates, Date.parse('2026-11-24T06:30:31Z'))).toContain('has expired')
  expect(expired({ ...dates, valid_to: '' }, Date.parse('2026-11-23T07:00:00Z'))).toContain('has expired')
  expect(expired({ ...dates, valid_from: 'x' }, Date.parse('2026-11-23T07:00:00Z'))).toContain('not valid before')
})

describe.skipIf(!Bun.which('openssl'))('another implementation of TLS', () => {
  const files = (name: string, { crt, key }: { crt: string; key: string }) => {
    const [cert, own] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
    writeFileSync(cert, crt)
    writeFileSync(own, tlsKey(key))
    return ['-cert', cert, '-key', own]
  }
  /** What s_client prints until the server closes, which it does for who does not speak HTTP/2. */
  const client = async (args: string[]) => {
    const child = Bun.spawn(['openssl', 's_client', '-connect', `127.0.0.1:${listener.port}`, '-alpn', 'h2', '-tls1_3', '-msg', ...args], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    child.stdin.write('GET / HTTP/1.1\r\nHost: nobody\r\n\r\n')
    await child.stdin.flush()
    return (await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])).join('')
  }

  test.each(['TLS_AES_256_GCM_SHA384', 'TLS_AES_128_GCM_SHA256'])(
    'gets an alert with the reason why its certificate is refused, every time, with %s',
    async (suite) => {
      for (let n = 0; n < 5; n++)
        expect(await client(['-ciphersuites', suite, ...files('twin', clientCertificate(['os:admin'], { ca: twin }))])).toContain(
          'fatal unknown_ca',
        )
      expect(await client(['-ciphersuites', suite])).toMatch(/alert number 116|certificate_required|certificate required/)
      const old = clientCertificate(['os:admin'], { now: new Date(Date.now() - 3 * day) })
      expect(await client(['-ciphersuites', suite, ...files('old', old)])).toContain('fatal certificate_expired')
    },
  )

  test('gets no session ticket, since a resumed session would not present its certificate again', async () => {
    const output = await client(files('good', clientCertificate(['os:admin'])))
    expect(output).toContain('client does not speak HTTP/2')
    expect(output).not.toContain('NewSessionTicket')
  })
})
