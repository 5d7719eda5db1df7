/**
 * Shared addresses of Equinix Metal: elastic addresses of a project, assigned to one device. Source: the reference of the Equinix
 * Metal API, version 1.
 */
import { canonicalIp } from '../../link/canonical.ts'
import { listOf, mappingOf, readJson, textOf } from '../../platform/loose.ts'
import { type CloudAccess, cloudApi, held, inNetwork, type SharedAddress } from './shared-address.ts'

const base = 'https://api.equinix.com/metal/v1'
const metadata = 'https://metadata.platformequinix.com/metadata'
const id = /^[\w-]{1,64}$/
/** Assignments of one reservation that are read at most. */
const mostAssignments = 256

/** A shared address that the token may move. */
export function equinixAddress(access: CloudAccess, { ip, apiToken }: { ip: string; apiToken: string }): SharedAddress {
  const api = cloudApi(access, base, { 'X-Auth-Token': apiToken, 'X-Consumer-Token': 'talos' })
  /** The assignment by which this machine has the address. */
  let assignment: string | undefined
  return {
    async take(signal) {
      const device = known(readJson((await access.fetch(metadata, { signal })) ?? '{}', 'equinix metadata').id, 'device')
      const project = known(held(await api(`/devices/${device}?include=project`, signal), 'project', `device ${device}`).id, 'project')
      const reservations = listOf((await api(`/projects/${project}/ips`, signal))?.ip_addresses).filter((one) => holds(one, ip))
      if (reservations.length === 0) throw new Error(`shared address: the project has no reservation that holds "${ip}"`)
      const links = reservations.flatMap(({ assignments }) => listOf(assignments).map(({ href }) => lastPart(href)))
      if (links.length > mostAssignments)
        throw new Error(`shared address: "${ip}" is in a reservation of more than ${mostAssignments} parts`)
      for (const link of links) {
        const found = await api(`/ips/${known(link, 'assignment')}`, signal)
        if (!found || canonicalIp(textOf(found.address)) !== ip) continue
        if (lastPart(mappingOf(found.assigned_to).href) === device) {
          assignment = link
          return
        }
        await api(`/ips/${link}`, signal, { method: 'DELETE' })
      }
      const made = await api(`/devices/${device}/ips`, signal, { method: 'POST', body: { address: ip } })
      assignment = known(made?.id ?? lastPart(made?.href), 'assignment')
    },
    async release(signal) {
      if (assignment !== undefined) await api(`/ips/${assignment}`, signal, { method: 'DELETE' })
      assignment = undefined
    },
  }
}

/** Whether a reservation, an address or a block of them, holds an address. */
function holds(reservation: Readonly<Record<string, unknown>>, ip: string): boolean {
  const [network, length] = [textOf(reservation.network) || textOf(reservation.address), textOf(reservation.cidr)]
  return network !== '' && (length === '' ? canonicalIp(network) === ip : inNetwork(ip, `${network}/${length}`))
}

/** Entries are named by the paths of their resources. */
const lastPart = (href: unknown): string => textOf(href).split('/').at(-1) ?? ''

/** An id that goes into a path. */
function known(value: unknown, what: string): string {
  const text = textOf(value)
  if (!id.test(text)) throw new Error(`shared address: the cloud gave no id of the ${what}`)
  return text
}
