import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { MachineStatus } from '../../runtime/resources/machine-status.ts'
import { type BootNetwork, silentBoot } from '../boot-network.ts'
import { configOutputs } from '../config-outputs.ts'
import { defaultMetric, operatorSpecs, routeId } from '../declared-specs.ts'
import { configuredLinks } from '../link/configured.ts'
import { physicalLinks } from '../link/names.ts'
import { type Findings, machineClock, type Operator } from '../operators/operator.ts'
import { type AddressSpec, AddressStatus } from '../resources/address.ts'
import { DeviceConfigSpec } from '../resources/device-config-spec.ts'
import { HostnameSpec, HostnameStatus } from '../resources/hostname.ts'
import { LinkSpec, LinkStatus } from '../resources/link.ts'
import { OperatorSpec } from '../resources/operator-spec.ts'
import type { ResolverSpec } from '../resources/resolver.ts'
import type { RouteSpec } from '../resources/route.ts'
import type { TimeServerSpec } from '../resources/time-server.ts'

/** Declares the operators of the configuration and the command line; on a machine also DHCP for each physical link without settings. */
export const configOperators = ({ mode }: Pick<Kernel, 'mode'>, boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.OperatorConfigController',
    effects: 'none',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      devices: weak(DeviceConfigSpec),
      links: weak(LinkStatus),
      layered: weak(LinkSpec, 'network-config'),
    },
    outputs: { spec: shared(OperatorSpec, 'network-config') },
    reconcile({ config, devices, links, layered, spec }) {
      const present = links.list()
      for (const [id, desired] of operatorSpecs(boot.links(present), 'cmdline'))
        if (desired.operator !== 'vip') spec.put(`cmdline/${id}`, desired)
      for (const [id, desired] of operatorSpecs(configuredLinks({ config, devices, links }, boot), 'configuration'))
        if (desired.operator !== 'vip') spec.put(`configuration/${id}`, desired)
      if (mode !== 'metal') return
      const spokenOf = new Set(
        layered.list().flatMap(({ spec: { name, layer } }) => (layer === 'default' || layer === 'operator' ? [] : [name])),
      )
      for (const linkName of physicalLinks(present, boot).filter((name) => !spokenOf.has(name)))
        spec.put(`default/dhcp4/${linkName}`, {
          operator: 'dhcp4',
          linkName,
          requireUp: true,
          dhcp4: { routeMetric: defaultMetric, clientIdentifier: { clientIdentifier: 'mac' } },
          layer: 'default',
        })
    },
  })

/** Merges the layers into one spec per operator. */
export const mergeOperators: Controller = merge('OperatorMergeControllers.net.talos.dev', OperatorSpec, strongest)

const leaving = new Set(['rebooting', 'shutting down', 'resetting', 'upgrading'])

interface State {
  /** Identifies the run: settings and link. */
  key: string
  /** Client identity as servers see it. As long as it is unchanged, findings stay valid until newer ones arrive. */
  client: string
  memory: Map<string, unknown>
  findings?: Findings | undefined
  /** Number of times the link's carrier returned. */
  carrier: number
  up: boolean
}

/** Runs the desired operators and publishes their findings. */
export const applyOperators = (operators: Readonly<Record<string, Operator>>): Controller => {
  const states = new Map<string, State>()
  let present = new Map<string, string>()
  return defineController({
    name: 'network.OperatorSpecController',
    inputs: {
      specs: weak(OperatorSpec),
      links: weak(LinkStatus),
      addresses: weak(AddressStatus),
      name: weak(HostnameStatus, { id: 'hostname' }),
      names: weak(HostnameSpec),
      machine: weak(MachineStatus, { id: 'machine' }),
    },
    outputs: {
      ...configOutputs,
    },
    reconcile({ specs, links, addresses, name, names, machine, log, background, wakeIn, ...outputs }) {
      present = new Map(addresses.list().map(({ metadata, spec }) => [metadata.id, spec.flags]))
      const desired = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec]))
      // A machine that shuts down releases shared addresses while its peers are still reachable.
      const going = leaving.has(machine.get('machine')?.spec.stage ?? '')
      for (const [id, { operator }] of desired) if (going && operator === 'vip') desired.delete(id)
      for (const id of states.keys()) if (!desired.has(id)) states.delete(id)
      // A hostname received from a server is not sent back to servers.
      const own = names.get('hostname')?.spec.layer === 'operator' ? '' : (name.get('hostname')?.spec.hostname ?? '')
      for (const [id, spec] of desired) {
        const link = links.get(spec.linkName)?.spec
        // The layer does not affect how an operator runs.
        const { layer: _, ...settings } = spec
        const key = JSON.stringify([settings, link?.index, link?.hardwareAddr])
        const client = JSON.stringify([spec.operator, identity(spec), link?.index, link?.hardwareAddr])
        const state = stateOf(states, id, { key, client, known: link !== undefined })
        const up = link !== undefined && (!spec.requireUp || ['up', 'unknown'].includes(link.operationalState))
        if (up && !state.up) state.carrier++
        state.up = up
        // Findings stay valid while the cable is unplugged: the lease is requested again when carrier returns.
        const left = (state.findings?.until ?? Number.POSITIVE_INFINITY) - machineClock.now()
        if (!link || (!up && left <= 0)) state.findings = undefined
        else if (!up && Number.isFinite(left)) wakeIn(Math.min(left, 3_600_000))
        state.memory.set('hostname', own)
        state.memory.set('linkLocal', spec.operator === 'dhcp6' ? linkLocal(addresses.list(), spec.linkName) : undefined)
        put(outputs, id, spec.linkName, state.findings)
        const run = operators[spec.operator]
        if (!up || !run || !link) continue
        background({ name: id, of: `${state.carrier} ${key}` }, (signal, wake, problem) =>
          run({
            spec,
            link: { index: link.index, name: spec.linkName, hardwareAddress: link.hardwareAddr },
            signal,
            log: log.with({ operator: spec.operator, link: spec.linkName }),
            clock: machineClock,
            ...lookups(spec.linkName, state.memory, (id) => present.get(id)),
            memory: state.memory,
            problem,
            report(findings) {
              state.findings = findings
              wake()
            },
          }),
        )
      }
    },
  })
}

/**
 * The state of an operator, begun again for another client. Other settings get a state object of their own, so that the previous
 * task, which is still stopping, can no longer change anything. Without a link nothing is known to have changed.
 */
function stateOf(states: Map<string, State>, id: string, now: Pick<State, 'key' | 'client'> & { known: boolean }): State {
  const { key, client, known } = now
  const before = states.get(id)
  if (before && (!known || (before.client === client && before.key === key))) return before
  const state: State = before?.client === client ? { ...before, key } : { key, client, memory: new Map(), carrier: 0, up: false }
  states.set(id, state)
  return state
}

/** What a running operator looks up: names from its memory, and flags of this node's addresses by `link/address`. */
function lookups(
  linkName: string,
  memory: State['memory'],
  flagsOf: (id: string) => string | undefined,
): Pick<Parameters<Operator>[0], 'hostname' | 'linkLocal' | 'present' | 'taken'> {
  return {
    hostname: () => String(memory.get('hostname') ?? ''),
    linkLocal: () => memory.get('linkLocal') as string | undefined,
    present: (address) => flagsOf(`${linkName}/${address}`) !== undefined,
    taken(address) {
      const flags = flagsOf(`${linkName}/${address}`)
      if (flags?.includes('dadfailed')) return true
      return flags === undefined || flags.includes('tentative') ? undefined : false
    },
  }
}

/** What identifies the client to servers; for a shared address, the whole spec. */
const identity = ({ operator, dhcp4, dhcp6, vip }: SpecOf<typeof OperatorSpec>) =>
  operator === 'vip' ? vip : (dhcp4 ?? dhcp6)?.clientIdentifier

/** The link-local address of the link, once duplicate address detection has passed. */
function linkLocal(addresses: readonly { spec: SpecOf<typeof AddressStatus> }[], name: string): string | undefined {
  const own = addresses.find(
    ({ spec }) => spec.linkName === name && spec.family === 'inet6' && spec.scope === 'link' && !/tentative|dadfailed/.test(spec.flags),
  )
  return own && addressOnly(own.spec.address)
}

interface Outputs {
  address: Putting<typeof AddressSpec>
  link: Putting<typeof LinkSpec>
  route: Putting<typeof RouteSpec>
  hostname: Putting<typeof HostnameSpec>
  resolver: Putting<typeof ResolverSpec>
  timeServer: Putting<typeof TimeServerSpec>
}

type Putting<T> = { put(id: string, spec: SpecOf<T>): void }

function put(outputs: Outputs, id: string, linkName: string, findings: Findings | undefined): void {
  if (!findings) return
  const layer = 'operator'
  const at = (what: string) => `${layer}/${id}/${what}`
  for (const address of findings.addresses) outputs.address.put(at(address.address), address)
  for (const route of findings.routes) outputs.route.put(at(routeId(route)), route)
  if (findings.mtu)
    outputs.link.put(`${layer}/${id}`, { name: linkName, logical: false, up: true, mtu: findings.mtu, kind: '', type: 'ether', layer })
  if (findings.hostname) outputs.hostname.put(at('hostname'), findings.hostname)
  if (findings.nameServers.length > 0 || findings.searchDomains.length > 0)
    outputs.resolver.put(at('resolvers'), { dnsServers: findings.nameServers, searchDomains: findings.searchDomains, layer })
  if (findings.timeServers.length > 0) outputs.timeServer.put(at('timeservers'), { timeServers: findings.timeServers, layer })
}
