import { afterAll, beforeEach, expect, test } from 'bun:test'
import type { Logger } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { DeviceLogin, deviceFlowOf } from '../../../../src/os/config/sources/device-flow.ts'
import { download } from '../../../../src/os/config/sources/download.ts'
import { SystemInformation } from '../../../../src/os/hardware/resources/system-information.ts'
import { NetworkStatus } from '../../../../src/os/network/resources/network-status.ts'
import { parseCommandLine } from '../../../../src/wire/command-line.ts'

const requests: { path: string; form: Record<string, string>; authorization: string | null }[] = []
let tokens: Response[] = []
let admitted = 'Bearer secret'
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    const form = Object.fromEntries(new URLSearchParams(await request.text()))
    const authorization = request.headers.get('authorization')
    requests.push({ path: pathname, form, authorization })
    if (pathname === '/device/code')
      return Response.json({
        device_code: 'D',
        user_code: 'ABCD-EFGH',
        verification_uri: 'https://id/device',
        expires_in: 600,
        interval: 2,
      })
    if (pathname === '/token') return tokens.shift() ?? refused('authorization_pending')
    return authorization === admitted ? new Response('version: v1alpha1\n') : new Response('', { status: 401 })
  },
})
const refused = (error: string) => Response.json({ error, error_description: 'as it is' }, { status: 400 })
const granted = (access_token: string) => Response.json({ access_token, token_type: 'Bearer' })
afterAll(() => server.stop(true))
beforeEach(() => {
  requests.length = 0
  admitted = 'Bearer secret'
})

const here = `http://127.0.0.1:${server.port}`
const oauth = 'talos.config.oauth.'
const parameters = `${oauth}client_id=me ${oauth}client_secret=hidden ${oauth}scope=a ${oauth}scope=b ${oauth}audience=who ${oauth}extra_variable=UUID`

function machine(commandLine = parameters) {
  const store = new Store()
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  store.put(SystemInformation, 'systeminformation', { uuid: 'u-1' })
  const lines: string[] = []
  const note = (message: string, fields: object = {}) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { debug: note, info: note, warn: note, error: note } as unknown as Logger
  const pauses: number[] = []
  const flow = deviceFlowOf(parseCommandLine(commandLine)) ?? expect.unreachable()
  /** Waits for the end of the attempt from this pause on. */
  const held = { from: Number.POSITIVE_INFINITY }
  const login = new DeviceLogin(flow, { fetch: fetch as never }, async (milliseconds, signal) => {
    pauses.push(milliseconds)
    if (pauses.length >= held.from) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  })
  const look = (signal = AbortSignal.timeout(10_000)) =>
    download(`${here}/config?id=\${uuid}`, { store, outbound: { fetch: fetch as never }, login }, { signal, log })
  return { look, lines, pauses, held }
}

test('a configuration is downloaded with the token that follows the confirmation', async () => {
  const { look, lines, pauses } = machine()
  tokens = [refused('authorization_pending'), refused('slow_down'), granted('secret')]
  expect(await look()).toBe('version: v1alpha1\n')
  expect(pauses).toEqual([2000, 2000, 7000])
  const common = { client_id: 'me', scope: 'a b', audience: 'who', uuid: 'u-1' }
  const token = { ...common, grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'D', client_secret: 'hidden' }
  expect(requests.map(({ path, form }) => [path, form])).toEqual([
    ['/device/code', common],
    ['/token', token],
    ['/token', token],
    ['/token', token],
    ['/config', {}],
  ])
  expect(requests.at(-1)?.authorization).toBe('Bearer secret')
  expect(lines[0]).toBe('confirm the download of the machine configuration {"at":"https://id/device","code":"ABCD-EFGH"}')
  expect(lines.join()).not.toMatch(/hidden|secret/)
  // The token serves for what is downloaded next.
  await look()
  expect(requests.at(-2)?.path).toBe('/config')
})

test('a confirmation that takes longer than an attempt is awaited by the next one', async () => {
  const { look, pauses, held } = machine()
  const over = new AbortController()
  held.from = 2
  tokens = [refused('authorization_pending')]
  const first = look(over.signal)
  first.catch(() => {})
  while (pauses.length < 2) await Bun.sleep(1)
  over.abort()
  await expect(first).rejects.toThrow('wait for the confirmation of code ABCD-EFGH at https://id/device: not yet')
  held.from = Number.POSITIVE_INFINITY
  requests.length = 0
  tokens = [granted('secret')]
  await look()
  expect(requests.map(({ path }) => path)).toEqual(['/token', '/config'])
})

test('a refusal ends the attempt, and the next one begins again', async () => {
  const { look } = machine()
  tokens = [refused('access_denied')]
  await expect(look()).rejects.toThrow(`authorize at "${here}/token": access_denied: as it is`)
  tokens = [granted('outdated')]
  await expect(look()).rejects.toThrow('the server answered 401')
  tokens = [granted('secret')]
  await look()
  expect(requests.filter(({ path }) => path === '/device/code')).toHaveLength(3)
})

test.each([
  [`${oauth}scope=a`, `read "${oauth}scope": "${oauth}client_id" is not on the kernel command line`],
  [`${oauth}client_id=a ${oauth}token_url=ftp://x`, `read "${oauth}token_url": "ftp://x" is no http(s) address`],
  [`${oauth}client_id=a ${oauth}extra_variable=color`, `read "${oauth}extra_variable": unknown variable "color"`],
])('%s is refused', (line, reason) => {
  expect(() => deviceFlowOf(parseCommandLine(line))).toThrow(reason)
})

test('without the parameters there is nothing to authorize', () => {
  expect(deviceFlowOf(parseCommandLine('talos.platform=metal'))).toBeUndefined()
})
