/** The summary when a cluster is ready: where its files are, and the next commands. */

import { formatHostPort } from '../../../wire/host-port.ts'
import type { ClusterRecord, NodeRecord } from '../../node-supervisor/layout.ts'
import type { Io } from '../io.ts'
import { callable } from './callable.ts'
import type { Progress } from './progress.ts'

/** How to go on with machines that nobody has configured yet. */
export function maintenance(io: Io, { nodes, name }: ClusterRecord): void {
  const talosctl = callable('talosctl')
  const lines = nodes.map(({ ip, role }) => `  ${talosctl} apply-config --insecure -n ${ip} --file ${role}.yaml`)
  io.stderr.write(`\nthe machines of cluster "${name}" start up to maintenance and wait for their configuration:\n${lines.join('\n')}\n`)
}

/** How to go on: where things are, and commands as they can be typed here; kubectl only if its configuration was written. */
export function closing(
  io: Io,
  record: ClusterRecord,
  { progress, kubeconfig }: { progress?: Progress | undefined; kubeconfig: boolean },
): void {
  const first = record.nodes[0]
  const talosctl = callable('talosctl')
  if (progress) io.stderr.write(`\n${progress.summary()}\n`)
  io.stderr.write(
    [
      '',
      ...endpoints(record),
      '',
      'try next:',
      `  ${talosctl} -n ${first?.ip} services`,
      // A kubeconfig that was left alone leads to another cluster, or to none.
      ...(kubeconfig ? [`  ${callable('kubectl')} get nodes`] : []),
      `  ${talosctl} cluster show --name ${record.name}`,
      '',
    ].join('\n'),
  )
}

/** Where the two APIs are: an engine's network may be out of reach for its host. */
function endpoints({ network, kubernetes, machineApi, nodes, engine }: ClusterRecord): string[] {
  const published = { kubernetes: `https://127.0.0.1:${kubernetes.hostPort}`, machines: `127.0.0.1:${machineApi.hostPort}` }
  if (engine) return [`Kubernetes: ${published.kubernetes}`, `machines: ${published.machines}`]
  return [
    `Kubernetes: https://${formatHostPort(network.gateway, kubernetes.port)}, also ${published.kubernetes}`,
    `machines: ${formatHostPort(nodes[0]?.ip ?? '', 50_000)}, also ${published.machines}`,
  ]
}

/** A cluster's nodes in words. */
export function describe(nodes: readonly NodeRecord[]): string {
  const count = (role: NodeRecord['role']) => nodes.filter((node) => node.role === role).length
  const plural = (number: number, word: string) => `${number} ${word}${number === 1 ? '' : 's'}`
  return `${plural(count('controlplane'), 'control plane')} and ${plural(count('worker'), 'worker')}`
}
