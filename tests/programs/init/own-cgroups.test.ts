import { expect, test } from 'bun:test'
import { ownGroups } from '../../../src/programs/init/own-cgroups.ts'

test('the groups of a process, of both versions and with colons in paths', () => {
  const text = '9:name=systemd:/docker/1\n8:cpu,cpuacct:/docker/1\n0::/system.slice/a:b.scope\n'
  expect(ownGroups(text)).toEqual([
    { controllers: 'name=systemd', path: '/docker/1' },
    { controllers: 'cpu,cpuacct', path: '/docker/1' },
    { controllers: '', path: '/system.slice/a:b.scope' },
  ])
})
