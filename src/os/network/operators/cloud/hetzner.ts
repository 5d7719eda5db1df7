/**
 * Shared addresses of Hetzner Cloud: an address of a private network is an alias of the server that has it, a public one is a
 * floating IP. Source: the reference of the Hetzner Cloud API, version 1.
 */
import type { SerialQueue } from '../../../../timing/serial-queue.ts'
import { canonicalIp } from '../../link/canonical.ts'
import { type Loose, listOf, mappingOf, textOf, textsOf } from '../../platform/loose.ts'
import { type CloudAccess, type CloudApi, cloudApi, held, inNetwork, type SharedAddress } from './shared-address.ts'

const base = 'https://api.hetzner.cloud/v1'
const instanceId = 'http://169.254.169.254/hetzner/v1/metadata/instance-id'
/** Pages of lists that are read at most, of 50 entries each. */
const mostPages = 100
/** Milliseconds between looks at an action, and looks at most: an alias moves within seconds. */
const pause = 500
const looks = 40

/** A shared address that the token may move. Servers are changed one at a time through the queue. */
export function hetznerAddress(
  access: CloudAccess,
  changes: SerialQueue,
  { ip, apiToken }: { ip: string; apiToken: string },
): SharedAddress {
  const api = cloudApi(access, base, { Authorization: `Bearer ${apiToken}` })
  const ownId = async (signal: AbortSignal) => {
    const id = (await access.fetch(instanceId, { signal }))?.trim() ?? ''
    if (!/^\d{1,19}$/.test(id)) throw new Error('shared address: the metadata of Hetzner Cloud has no id of this server')
    return id
  }
  const server = async (id: string, signal: AbortSignal) => held(await api(`/servers/${id}`, signal), 'server', `server ${id}`)
  return {
    take: (signal) =>
      changes.run(async () => {
        const own = await server(await ownId(signal), signal)
        const network = await networkOf(api, own, ip, signal)
        if (network === undefined) return assignFloating(api, access, { ip, own }, signal)
        for (const other of await listed(api, 'servers', signal))
          if (textOf(other.id) !== textOf(own.id) && aliases(other, network).includes(ip))
            await alias(api, access, { server: other, network, ips: aliases(other, network).filter((one) => one !== ip) }, signal)
        const present = aliases(own, network)
        if (!present.includes(ip)) await alias(api, access, { server: own, network, ips: [...present, ip] }, signal)
      }),
    release: (signal) =>
      changes.run(async () => {
        const own = await server(await ownId(signal), signal)
        for (const { network } of listOf(own.private_net)) {
          const present = aliases(own, textOf(network))
          if (!present.includes(ip)) continue
          await alias(api, access, { server: own, network: textOf(network), ips: present.filter((one) => one !== ip) }, signal)
        }
      }),
  }
}

/** The id of the server's first private network whose range holds the address. */
async function networkOf(api: CloudApi, own: Loose, ip: string, signal: AbortSignal): Promise<string | undefined> {
  for (const { network } of listOf(own.private_net)) {
    const id = textOf(network)
    const range = textOf(held(await api(`/networks/${id}`, signal), 'network', `network ${id}`).ip_range)
    if (range !== '' && inNetwork(ip, range)) return id
  }
  return undefined
}

/** The other addresses of a server in a network. */
const aliases = (server: Loose, network: string): string[] =>
  listOf(server.private_net).flatMap((one) => (textOf(one.network) === network ? textsOf(one.alias_ips).map(canonicalIp) : []))

/** Sets the whole list of aliases, the only form of the API. */
async function alias(
  api: CloudApi,
  access: CloudAccess,
  { server, network, ips }: { server: Loose; network: string; ips: string[] },
  signal: AbortSignal,
): Promise<void> {
  const path = `/servers/${textOf(server.id)}/actions/change_alias_ips`
  await acted(api, access, await api(path, signal, { method: 'POST', body: { network: Number(network), alias_ips: ips } }), signal)
}

async function assignFloating(api: CloudApi, access: CloudAccess, { ip, own }: { ip: string; own: Loose }, signal: AbortSignal) {
  const found = (await listed(api, 'floating_ips', signal)).find((one) => {
    const address = textOf(one.ip)
    return address.includes('/') ? inNetwork(ip, address) : canonicalIp(address) === ip
  })
  if (!found) throw new Error(`shared address: "${ip}" is neither in a network of this server nor a floating IP of its project`)
  if (textOf(found.server) === textOf(own.id)) return
  const path = `/floating_ips/${textOf(found.id)}/actions/assign`
  await acted(api, access, await api(path, signal, { method: 'POST', body: { server: Number(textOf(own.id)) } }), signal)
}

/** Waits for the end of an action, so that the next one does not find its server or its address locked. */
async function acted(api: CloudApi, access: CloudAccess, answer: Loose | undefined, signal: AbortSignal): Promise<void> {
  let action = held(answer, 'action', 'server or address to change')
  for (let look = 0; look < looks && action.status === 'running'; look++) {
    await access.sleep(pause, signal)
    signal.throwIfAborted()
    action = held(await api(`/actions/${textOf(action.id)}`, signal), 'action', `action ${textOf(action.id)}`)
  }
  if (action.status !== 'success') {
    const why = action.status === 'running' ? `it runs for more than ${(pause * looks) / 1000} s` : textOf(mappingOf(action.error).message)
    throw new Error(`shared address: the cloud could not move it: ${why}`)
  }
}

/** All entries of a list that is given in pages. */
async function listed(api: CloudApi, name: 'servers' | 'floating_ips', signal: AbortSignal): Promise<Loose[]> {
  const all: Loose[] = []
  for (let page = 1; page <= mostPages; ) {
    const answer = (await api(`/${name}?page=${page}&per_page=50`, signal)) ?? {}
    all.push(...listOf(answer[name]))
    const next = Number(textOf(mappingOf(mappingOf(answer.meta).pagination).next_page))
    if (!Number.isInteger(next) || next <= page) return all
    page = next
  }
  throw new Error(`shared address: the list of ${name} has more than ${mostPages} pages`)
}
