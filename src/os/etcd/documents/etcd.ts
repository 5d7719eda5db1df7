import * as v from 'valibot'
import { argument, certificateAndKey, described, listOf, mapOf, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { argumentRules } from '../../k8s/documents/arguments.ts'
import { isSubnet } from '../../network/documents/subnet.ts'

/** `cluster.etcd`. */
export const etcd = section({
  image: described(text, "etcd's image."),
  ca: described(certificateAndKey, 'The authority of etcd.'),
  extraArgs: described(mapOf(argument), 'Flags for etcd.'),
  subnet: described(text, 'Old word for advertisedSubnets.'),
  advertisedSubnets: v.pipe(
    listOf(text),
    v.description('Which networks the advertised address may be taken from.'),
    v.metadata({ example: ['10.0.0.0/8'] }),
  ),
  listenSubnets: described(listOf(text), 'Which networks etcd listens on.'),
})

/** Rules of the section. */
export function etcdRules(section: v.InferOutput<typeof etcd> | undefined, report: Reporter, isWorker: boolean): void {
  if (!section) return
  if (isWorker) report.error(['cluster', 'etcd'], 'only control planes run etcd')
  argumentRules('etcd', section, report, ['cluster', 'etcd'])
  timingRules(section.extraArgs ?? {}, report)
  if (section.subnet && section.advertisedSubnets?.length)
    report.error(['cluster', 'etcd', 'subnet'], 'subnet and advertisedSubnets exclude each other')
  for (const key of ['advertisedSubnets', 'listenSubnets'] as const) {
    for (const [index, subnet] of (section[key] ?? []).entries()) {
      if (!isSubnet(subnet)) report.error(['cluster', 'etcd', key, index], `${JSON.stringify(subnet)} is not a subnet or address`)
    }
  }
}

/** etcd's own defaults and limits, in milliseconds. */
const timing = { heartbeat: 100, election: 1000, most: 50_000, factor: 5 }

/** The relation between two flags that etcd checks before it starts. */
function timingRules(args: Readonly<Record<string, string | readonly string[]>>, report: Reporter): void {
  const given = (flag: string) => {
    const value = [args[flag] ?? []].flat().at(-1)
    // A value that is not a number is reported elsewhere.
    return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined
  }
  const election = given('election-timeout')
  const heartbeat = given('heartbeat-interval')
  const at = (flag: string) => ['cluster', 'etcd', 'extraArgs', flag]
  const [least, most] = [(heartbeat ?? timing.heartbeat) * timing.factor, timing.most]
  if (election !== undefined && election > most)
    report.error(at('election-timeout'), `etcd does not start with an election timeout of more than ${most} ms`)
  if ((election ?? timing.election) < least)
    report.error(
      at(election === undefined ? 'heartbeat-interval' : 'election-timeout'),
      `etcd does not start with an election timeout (${election ?? timing.election} ms) of less than ${timing.factor} heartbeats (${least} ms)`,
    )
}
