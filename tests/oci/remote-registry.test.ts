import { afterAll, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { RegistryError, RemoteRegistry } from '../../src/oci/remote-registry.ts'

const content = Buffer.from('content of a layer')
const digest = `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`
const reference = { domain: 'registry.test', repository: 'a', tag: 'v1' }

/** A registry whose tokens are valid for a limited number of requests. */
let requestsLeft = 0
let issued = 0
let token: string | object = ''
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname, origin } = new URL(request.url)
    if (pathname === '/token') {
      requestsLeft = 2
      token = `token-${++issued}`
      return Response.json({ token })
    }
    if (pathname === '/list') return Response.json(null)
    if (pathname.endsWith('silent'))
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(content.subarray(0, 3)) }))
    const realm = pathname.includes('/b/') ? '/list' : '/token'
    if (request.headers.get('authorization') !== `Bearer ${token}` || requestsLeft-- <= 0)
      return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${origin}${realm}",service="x"` } })
    return new Response(content)
  },
})
afterAll(() => server.stop(true))
beforeEach(() => {
  issued = 0
  token = 'none'
})
const registry = (idle?: number) => new RemoteRegistry({ hosts: () => [{ url: server.url.href }], ...(idle && { idle }) })

test('a token that expires during a long pull is renewed', async () => {
  const one = registry()
  for (let times = 0; times < 6; times++) expect(await one.smallBlob(reference, digest)).toEqual(content)
  expect(issued).toBe(3)
})

test('a token in an unexpected format is a one-line error', async () => {
  await expect(registry().smallBlob({ ...reference, repository: 'b' }, digest)).rejects.toThrow('an unexpected format')
})

test('the registry decides whether something exists, and only its mirrors get its name', async () => {
  const requested: string[] = []
  const from = (answers: Record<string, number | Error>) =>
    new RemoteRegistry({
      hosts: () => Object.keys(answers).map((host) => ({ url: `https://${host}` })),
      async fetch(url) {
        requested.push(url)
        const answer = answers[new URL(url).host]!
        if (typeof answer !== 'number') throw answer
        return new Response('', { status: answer })
      },
    }).manifest(reference)
  const down = new Error('refused')
  await expect(from({ 'mirror.test': 404, 'registry.test': down })).rejects.toMatchObject({ reason: 'unreachable' })
  await expect(from({ 'mirror.test': down, 'registry.test': 404 })).rejects.toMatchObject({ reason: 'missing' })
  await expect(from({ 'mirror.test': 403, 'registry.test': 404 })).rejects.toMatchObject({ reason: 'refused' })
  expect(requested.slice(0, 2)).toEqual([
    'https://mirror.test/v2/a/manifests/v1?ns=registry.test',
    'https://registry.test/v2/a/manifests/v1',
  ])
})

test('a registry that stops sending times out', async () => {
  const error = await registry(20)
    .smallBlob(reference, 'silent')
    .catch((reason) => reason)
  expect(error).toBeInstanceOf(RegistryError)
  expect(error.message).toContain('no data received within 0.02 s')
})

test('a registry that cannot be reached leaves nothing that keeps the program from ending', async () => {
  const program = `
    import { directHosts, RemoteRegistry } from '${join(import.meta.dir, '../../src/oci/remote-registry.ts')}'
    const registry = new RemoteRegistry({ hosts: (domain) => directHosts(domain), fetch: () => Promise.reject(new Error('refused')) })
    await registry.manifest({ domain: 'registry.test', repository: 'a', tag: 'b' }).catch(() => {})
  `
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'ignore', stderr: 'ignore', timeout: 15_000 })
  expect(await child.exited).toBe(0)
}, 20_000)
