import { describe, expect, test } from 'bun:test'
import { etcdArguments } from '../../../src/os/etcd/arguments.ts'
import { ArgumentError, additive, buildArguments, denied, overwrite } from '../../../src/os/k8s/arguments.ts'
import { apiServerArguments, controllerManagerArguments, schedulerArguments } from '../../../src/os/k8s/control-plane/arguments.ts'
import { kubeletArguments } from '../../../src/os/k8s/controllers/kubelet/kubelet-spec.ts'
import { ownFlags } from '../../../src/os/k8s/documents/own-flags.ts'
import { type Program, settings } from '../../../src/os/k8s/documents/settings.ts'

const ours = { a: overwrite('1'), list: additive(['x', 'y']), mine: denied('/secret'), later: denied(), open: additive() }

test('flags come in the order of their names, those without a value are left out', () => {
  expect(buildArguments('c', ours)).toEqual(['--a=1', '--list=x,y', '--mine=/secret'])
})

test('the operator replaces, adds to lists once, and repeats what they say more than once', () => {
  const theirs = { a: { values: ['2'] }, list: { values: ['y,z'] }, open: { values: ['A=true'] }, own: { values: ['1', '2'] } }
  expect(buildArguments('c', ours, theirs)).toEqual(['--a=2', '--list=x,y,z', '--mine=/secret', '--open=A=true', '--own=1', '--own=2'])
})

test.each(['mine', 'later'])("flag %s is not the operator's", (name) => {
  expect(() => buildArguments('kubelet', ours, { [name]: { values: ['x'] } })).toThrow(ArgumentError)
  expect(() => buildArguments('kubelet', ours, { [name]: { values: ['x'] } })).toThrow(`extra argument "${name}" of kubelet may not be set`)
})

describe('flags that the system sets itself are refused when a configuration is applied:', () => {
  const config = <T extends object>(spec: object) => spec as unknown as T
  const commandLines: Partial<Record<Program, (extraArgs: object) => string[]>> = {
    kubelet: (extraArgs) => kubeletArguments(config({ image: '', extraArgs }), { name: 'cp-1' }),
    'kube-apiserver': (extraArgs) => apiServerArguments(config({ extraArgs })),
    'kube-controller-manager': (extraArgs) => controllerManagerArguments(config({ extraArgs })),
    'kube-scheduler': (extraArgs) => schedulerArguments(config({ extraArgs })),
    etcd: (extraArgs) =>
      etcdArguments(config({ name: 'cp-1', listenPeerAddresses: [], listenClientAddresses: [], advertisedAddresses: [], extraArgs }), {
        state: 'new',
        initialCluster: '',
      }),
  }

  test.each(Object.entries(commandLines))('%s', (program, commandLine) => {
    const listed = ownFlags[program as Program] ?? []
    const flags = [
      ...settings()
        .flags.get(program as Program)!
        .keys(),
      ...listed,
    ]
    const denies = (flag: string) => {
      try {
        commandLine({ [flag]: { values: ['x'] } })
        return false
      } catch (error) {
        if (error instanceof ArgumentError) return true
        throw error
      }
    }
    // One of them belongs to the API server only where its authorization is not configured by flags.
    const denied = [...new Set(flags)].filter((flag) => denies(flag) && flag !== 'authorization-config')
    expect(denied.toSorted()).toEqual(listed.toSorted())
  })
})
