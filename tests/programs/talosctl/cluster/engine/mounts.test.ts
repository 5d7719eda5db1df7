import { expect, test } from 'bun:test'
import { parseMount } from '../../../../../src/programs/talosctl/cluster/engine/mounts.ts'

test.each([
  ['type=bind,source=/data,target=/mnt,readonly', { Type: 'bind', Source: '/data', Target: '/mnt', ReadOnly: true }],
  ['type=bind,src=/data,dst=/mnt,ro=false', { Type: 'bind', Source: '/data', Target: '/mnt' }],
  [
    'type=bind,source=/data,destination=/mnt,bind-propagation=rshared',
    { Type: 'bind', Source: '/data', Target: '/mnt', BindOptions: { Propagation: 'rshared' } },
  ],
  ['source=cache,target=/mnt', { Type: 'volume', Source: 'cache', Target: '/mnt' }],
  ['type=volume,target=/mnt', { Type: 'volume', Target: '/mnt' }],
  ['type=tmpfs,target=/mnt', { Type: 'tmpfs', Target: '/mnt' }],
  [
    'type=tmpfs,target=/mnt,tmpfs-size=64m,tmpfs-mode=1777',
    { Type: 'tmpfs', Target: '/mnt', TmpfsOptions: { SizeBytes: 64 << 20, Mode: 0o1777 } },
  ],
  ['type=tmpfs,target=/mnt,tmpfs-size=4096', { Type: 'tmpfs', Target: '/mnt', TmpfsOptions: { SizeBytes: 4096 } }],
])('%s', (text, mount) => {
  expect(parseMount(text)).toEqual(mount as never)
})

test.each([
  ['type=bind,source=data,target=/mnt', 'the source is a path of the host'],
  ['type=bind,target=/mnt', 'the source is a path of the host'],
  ['type=bind,source=/data', 'the target is a path in the node'],
  ['type=npipe,source=/data,target=/mnt', 'the type is one of bind, volume, tmpfs'],
  ['type=bind,source=/data,target=/mnt,consistency=cached', 'there is no key "consistency" here'],
  ['type=bind,source=/data,source=/more,target=/mnt', '"source" is given twice'],
  ['type=tmpfs,source=x,target=/mnt', 'a tmpfs has no source'],
  ['type=tmpfs,target=/mnt,tmpfs-mode=9', 'tmpfs-mode is octal'],
  ['type=tmpfs,target=/mnt,tmpfs-size=much', 'write an amount of memory'],
  ['type=volume,source=../x,target=/mnt', 'the source is the name of a volume'],
  ['type=volume,target=/mnt,bind-propagation=shared', '"bind-propagation" is for type=bind'],
  ['type=bind,source=/data,target=/mnt,bind-propagation=wide', 'bind-propagation is one of'],
  ['type=bind,source=/data,target=/mnt,readonly=maybe', '"readonly" is true or false'],
])('%s is refused', (text, reason) => {
  expect(() => parseMount(text)).toThrow(reason)
})
