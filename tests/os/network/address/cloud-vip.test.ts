/** Shared addresses that a cloud moves, against servers that answer as the references of its API describe. */
import { afterAll, expect, test } from 'bun:test'
import { isObject } from '../../../../src/document/is-object.ts'
import { cloudAddresses } from '../../../../src/os/network/operators/cloud/clouds.ts'
import { vipOperator } from '../../../../src/os/network/operators/vip.ts'
import { fetchText } from '../../../../src/os/network/platform/transport.ts'
import { operationOf } from './operation.ts'

interface Called {
  call: string
  body: unknown
}
type Answer = { status?: number; body?: unknown } | undefined

const servers: { stop(force: boolean): unknown }[] = []
afterAll(() => Promise.all(servers.map((server) => server.stop(true))))

/** Serves a cloud; every request, whichever host it is for, reaches the one server. */
function serve(answer: (call: string, body: Record<string, unknown>, headers: Headers) => Answer) {
  const calls: Called[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      const body: unknown = text === '' ? {} : JSON.parse(text)
      const call = `${request.method} ${pathname}${search}`
      if (request.method !== 'GET') calls.push({ call, body })
      const reply = answer(call, isObject(body) ? body : {}, request.headers)
      if (!reply) return new Response('{"error":{"code":"not_found"}}', { status: 404 })
      return reply.body === undefined
        ? new Response(null, { status: reply.status ?? 204 })
        : new Response(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body), { status: reply.status ?? 200 })
    },
  })
  servers.push(server)
  const local = (url: string) => url.replace(/^https?:\/\/[^/]+/, `http://127.0.0.1:${server.port}`)
  const clouds = cloudAddresses({ fetch: (url, options) => fetchText(local(url), options), sleep: () => Promise.resolve() })
  return { calls, clouds }
}

const { signal } = new AbortController()
const token = 'secret-token'

/** Hetzner Cloud with two servers of one network, on the second of them. */
function hetzner({ aliases = [[], []] as string[][], fails = false } = {}) {
  const alias = new Map([11, 12].map((id, index) => [id, aliases[index] ?? []]))
  let floating = 11
  const server = (id: number) => ({ id, private_net: [{ network: 7, ip: `10.1.0.${id}`, alias_ips: alias.get(id) }] })
  const action = (status: string) => ({ body: { action: { id: 99, status, error: fails ? { message: 'the server is locked' } : null } } })
  const made = serve((call, body, headers) => {
    if (call === 'GET /hetzner/v1/metadata/instance-id') return { body: '12\n' }
    if (headers.get('authorization') !== `Bearer ${token}`) return { status: 401, body: {} }
    if (call === 'GET /v1/servers/12') return { body: { server: server(12) } }
    if (call === 'GET /v1/networks/7') return { body: { network: { id: 7, ip_range: '10.1.0.0/16' } } }
    if (call === 'GET /v1/servers?page=1&per_page=50')
      return { body: { servers: [server(12)], meta: { pagination: { page: 1, next_page: 2 } } } }
    if (call === 'GET /v1/servers?page=2&per_page=50')
      return { body: { servers: [server(11)], meta: { pagination: { page: 2, next_page: null } } } }
    if (call === 'GET /v1/floating_ips?page=1&per_page=50')
      return {
        body: {
          floating_ips: [
            { id: 5, ip: '198.51.100.7', server: floating },
            { id: 6, ip: '2001:db8:1::/64', server: null },
          ],
        },
      }
    if (call === 'GET /v1/actions/99') return action(fails ? 'error' : 'success')
    const changed = /^POST \/v1\/servers\/(\d+)\/actions\/change_alias_ips$/.exec(call)
    if (changed) alias.set(Number(changed[1]), body.alias_ips as string[])
    if (call === 'POST /v1/floating_ips/5/actions/assign') floating = Number(body.server)
    return call.startsWith('POST ') ? action('running') : undefined
  })
  return { ...made, alias, at: (ip: string) => made.clouds({ ip, gratuitousARP: false, hcloud: { apiToken: token } }) }
}

test('an address of a private network moves between servers of Hetzner Cloud, whose other aliases stay', async () => {
  const { at, calls, alias } = hetzner({ aliases: [['10.1.0.50', '10.1.0.60'], ['10.1.0.70']] })
  const address = at('10.1.0.50')
  await address?.take(signal)
  expect(calls).toEqual([
    { call: 'POST /v1/servers/11/actions/change_alias_ips', body: { network: 7, alias_ips: ['10.1.0.60'] } },
    { call: 'POST /v1/servers/12/actions/change_alias_ips', body: { network: 7, alias_ips: ['10.1.0.70', '10.1.0.50'] } },
  ])
  await address?.take(signal)
  expect(calls).toHaveLength(2)
  await address?.release(signal)
  expect(alias.get(12)).toEqual(['10.1.0.70'])
})

test('two addresses that a server takes at once are both its aliases', async () => {
  const { at, alias } = hetzner()
  await Promise.all([at('10.1.0.50')?.take(signal), at('10.1.0.51')?.take(signal)])
  expect(alias.get(12)).toEqual(['10.1.0.50', '10.1.0.51'])
})

test('a floating IP of Hetzner Cloud is assigned once, also one within a network of IPv6', async () => {
  const { at, calls } = hetzner()
  await at('198.51.100.7')?.take(signal)
  await at('198.51.100.7')?.take(signal)
  await at('2001:db8:1::5')?.take(signal)
  expect(calls).toEqual([
    { call: 'POST /v1/floating_ips/5/actions/assign', body: { server: 12 } },
    { call: 'POST /v1/floating_ips/6/actions/assign', body: { server: 12 } },
  ])
})

test('what the cloud refuses is one line without the token', async () => {
  const { at } = hetzner({ fails: true })
  await expect(at('10.1.0.50')?.take(signal)).rejects.toThrow('the cloud could not move it: the server is locked')
  await expect(at('192.0.2.1')?.take(signal)).rejects.toThrow('"192.0.2.1" is neither in a network of this server nor a floating IP')
  const { clouds } = hetzner()
  const wrong = clouds({ ip: '10.1.0.50', gratuitousARP: false, hcloud: { apiToken: 'other-secret' } })
  const error = await wrong?.take(signal).catch((error: Error) => error)
  expect(error).toHaveProperty('message', expect.stringMatching(/\/v1\/servers\/12": the server answered 401$/))
  expect(Bun.inspect(error)).not.toContain('other-secret')
})

/** Equinix Metal with an elastic address and a block, on the device `d2`. */
function equinix() {
  const assigned = new Map([
    ['a1', { address: '198.51.100.7', device: 'd1' }],
    ['a2', { address: '198.51.100.17', device: 'd1' }],
  ])
  const made = serve((call, body, headers) => {
    if (call === 'GET /metadata') return { body: { id: 'd2' } }
    if (headers.get('x-auth-token') !== token || headers.get('x-consumer-token') !== 'talos') return { status: 401, body: {} }
    if (call === 'GET /metal/v1/devices/d2?include=project') return { body: { id: 'd2', project: { id: 'p1' } } }
    if (call === 'GET /metal/v1/projects/p1/ips') {
      const assignments = (...addresses: string[]) =>
        [...assigned].filter(([, { address }]) => addresses.includes(address)).map(([id]) => ({ href: `/metal/v1/ips/${id}` }))
      return {
        body: {
          ip_addresses: [
            { address: '198.51.100.7', network: '198.51.100.7', cidr: 32, assignments: assignments('198.51.100.7') },
            { address: '198.51.100.16', network: '198.51.100.16', cidr: 29, assignments: assignments('198.51.100.17', '198.51.100.18') },
            { type: 'vrf', assignments: [] },
          ],
        },
      }
    }
    const of = /^(GET|DELETE) \/metal\/v1\/ips\/(\w+)$/.exec(call)
    const one = assigned.get(of?.[2] ?? '')
    if (of?.[1] === 'GET') return one && { body: { address: one.address, assigned_to: { href: `/metal/v1/devices/${one.device}` } } }
    if (of && one) {
      assigned.delete(of[2] ?? '')
      return {}
    }
    if (call !== 'POST /metal/v1/devices/d2/ips') return undefined
    assigned.set('a9', { address: String(body.address), device: 'd2' })
    return { status: 201, body: { id: 'a9', href: '/metal/v1/ips/a9' } }
  })
  return { ...made, assigned, at: (ip: string) => made.clouds({ ip, gratuitousARP: false, equinixMetal: { apiToken: token } }) }
}

test('an elastic address of Equinix Metal is taken from the device that has it, and given back', async () => {
  const { at, calls, assigned } = equinix()
  const address = at('198.51.100.7')
  await address?.take(signal)
  expect(calls.map(({ call }) => call)).toEqual(['DELETE /metal/v1/ips/a1', 'POST /metal/v1/devices/d2/ips'])
  await address?.take(signal)
  expect(calls).toHaveLength(2)
  await address?.release(signal)
  expect([...assigned.keys()]).toEqual(['a2'])
})

test('of a block of Equinix Metal only the one address moves', async () => {
  const { at, calls, assigned } = equinix()
  await at('198.51.100.18')?.take(signal)
  expect([calls.map(({ call }) => call), [...assigned.keys()]]).toEqual([['POST /metal/v1/devices/d2/ips'], ['a1', 'a2', 'a9']])
  await expect(at('192.0.2.1')?.take(signal)).rejects.toThrow('the project has no reservation that holds "192.0.2.1"')
})

test('a node is the owner only once the cloud has moved the address; it announces nothing, and reports what is wrong', async () => {
  const { clouds, alias } = hetzner()
  const stop = new AbortController()
  const taken = Promise.withResolvers<AbortController>()
  const problems: unknown[] = []
  const addresses: (string | undefined)[] = []
  let tries = 0
  const vip = { ip: '10.1.0.50', gratuitousARP: false, hcloud: { apiToken: token } }
  const operator = vipOperator(
    {
      announce: () => {
        throw new Error('announced')
      },
    },
    async (_name, act) => {
      const holding = new AbortController()
      if (++tries > 1) taken.resolve(holding)
      await act(holding.signal)
    },
    (vip) => {
      const address = clouds(vip)
      return (
        address && {
          ...address,
          take: (signal) => (tries === 1 ? Promise.reject(new Error('the server answered 503')) : address.take(signal)),
        }
      )
    },
  )
  const assigned = Promise.withResolvers<void>()
  const ended = operator(
    operationOf({
      spec: { operator: 'vip', linkName: 'eth1', requireUp: true, vip, layer: 'configuration' },
      signal: stop.signal,
      problem: (error) => void problems.push((error as Error | undefined)?.message),
      report(findings) {
        addresses.push(findings?.addresses[0]?.address)
        if (findings) assigned.resolve()
      },
    }),
  )
  const holding = await taken.promise
  await assigned.promise
  expect([problems, alias.get(12)]).toEqual([['the server answered 503', undefined], ['10.1.0.50']])
  stop.abort()
  holding.abort()
  await ended
  expect([addresses, alias.get(12)]).toEqual([[undefined, '10.1.0.50/32', undefined, undefined], []])
})
