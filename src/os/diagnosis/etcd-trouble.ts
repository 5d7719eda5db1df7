/** Why etcd does not serve, according to its members. */
import { type EtcdView, majorityOf } from '../etcd/public.ts'
import type { Finding } from './findings.ts'

/** The causes that keep etcd from serving, according to its members. */
export function etcdTrouble({ leader, members }: EtcdView): Finding[] {
  const silent = members.filter((member) => !member.answers)
  const list = silent.map(({ name, address }) => `${name} (${address})`).join(', ')
  const majority = majorityOf(members.length)
  const there = members.length - silent.length
  if (there < majority)
    return [
      {
        kind: 'outside',
        about: { kind: 'other' },
        subject: 'etcd members',
        sentence:
          `${there} of ${members.length} answer, and a leader needs ${majority}: bring back ${list}, ` +
          'or recover from a snapshot with "talosctl bootstrap --recover-from"',
        urgent: true,
      },
    ]
  if (!leader)
    return [
      {
        kind: 'outside',
        about: { kind: 'other' },
        subject: 'etcd members',
        sentence: 'they have no leader at the moment: an election is running',
        urgent: true,
      },
    ]
  return []
}
