import { describe, expect, test } from 'bun:test'
import { mountFlags } from '../../../../src/linux/fs/mount.ts'
import { kubeletMounts, type NodeMount } from '../../../../src/os/k8s/kubelet/mounts.ts'
import { NodeMounts } from '../../../../src/os/k8s/node/mounts.ts'

const bind = (source: string, destination: string, ...options: string[]) => ({ source, destination, type: 'bind', options })
const parts = (mode: 'container' | 'metal') => ({ mode, files: { exists: () => true } })

describe.each(['container', 'metal'] as const)('the mounts of the kubelet of a %s node', (mode) => {
  const of = (...extra: ReturnType<typeof bind>[]) => {
    const { container, node } = kubeletMounts(parts(mode), extra)
    return { container, added: container.slice(kubeletMounts(parts(mode)).container.length), node }
  }

  test('spread nothing to the node, where it would be once more after each start', () => {
    const { container, added, node } = of(
      bind('/var/mnt/data', '/var/mnt/data', 'rbind', 'rshared', 'rw'),
      bind('/var/local', '/var/local', 'rbind', 'rw'),
    )
    expect([added, node]).toEqual([[], []])
    const over = container.filter(({ destination }) =>
      container.some((under) => destination.startsWith(`${under.destination}/`) && !under.options?.includes('rslave')),
    )
    expect(over).toEqual([])
  })

  test('are made on the node below what the two share: from another place, read-only, or of another type', () => {
    const memory = { source: 'tmpfs', destination: '/run/scratch', type: 'tmpfs', options: ['size=1m'] }
    const { added, node } = of(
      bind('/var/data', '/var/lib/kubelet/data', 'rbind', 'rshared', 'rw'),
      bind('/var/mnt/data', '/var/mnt/data', 'rbind', 'ro'),
      memory,
    )
    expect(added).toEqual([])
    expect(node).toEqual([
      { source: '/var/data', target: '/var/lib/kubelet/data', type: 'bind', options: ['rbind', 'rshared', 'rw'] },
      { source: '/var/mnt/data', target: '/var/mnt/data', type: 'bind', options: ['rbind', 'ro'] },
      { source: 'tmpfs', target: '/run/scratch', type: 'tmpfs', options: ['size=1m'] },
    ])
  })

  test('below another extra mount are made on the node at its source, unless that one keeps to itself', () => {
    const shared = of(bind('/var/data', '/data', 'rbind', 'rshared'), bind('/var/other', '/data/other', 'rbind'))
    expect(shared.node.map(({ target }) => target)).toEqual(['/var/data/other'])
    const apart = of(bind('/var/data', '/data', 'rbind', 'rprivate'), bind('/var/other', '/data/other', 'rbind'))
    expect(apart.node).toEqual([])
    expect(apart.added.map(({ destination }) => destination)).toEqual(['/data', '/data/other'])
  })

  test('below one that hides a shared folder are its own', () => {
    const { added, node } = of(bind('/srv', '/etc', 'rbind', 'rprivate'), bind('/var/x', '/etc/kubernetes/x', 'rbind'))
    expect([added.length, node]).toEqual([2, []])
  })
})

test('a pod’s hostPath is judged where it will be mounted: all that can be written is shared', () => {
  const shared = kubeletMounts(parts('metal')).container.filter(({ options }) => options?.includes('rshared') && options.includes('rw'))
  expect(shared.map(({ source, destination }) => [source, destination])).toEqual(
    ['/sys/fs/cgroup', '/etc/kubernetes', '/opt', '/run', '/tmp', '/usr/libexec/kubernetes', '/var'].map((path) => [path, path]),
  )
})

describe('mounts with other owners', () => {
  const ids = [{ containerid: 0, hostid: 1000, size: 10 }]
  const mapped = (destination: string) => ({ ...bind('/var/data', destination, 'bind'), uidmappings: ids, gidmappings: ids })

  test('are the container’s own, with the mappings as the runtime takes them', () => {
    const expected = [{ containerID: 0, hostID: 1000, size: 10 }]
    expect(kubeletMounts(parts('metal'), [mapped('/data')]).container.at(-1)).toEqual({
      ...bind('/var/data', '/data', 'bind'),
      uidMappings: expected,
      gidMappings: expected,
    })
  })

  test('are refused where the node would have to make them', () => {
    expect(() => kubeletMounts(parts('metal'), [bind('/var/b', '/b', 'rbind'), mapped('/b/data')])).toThrow(
      'machine.kubelet.extraMounts: owners are not mapped at "/b/data"',
    )
  })
})

test('programs that give credentials are those of the system, or those of an extra mount in their place', () => {
  const place = '/usr/local/lib/kubelet/credentialproviders'
  const { container, node } = kubeletMounts(parts('metal'), [bind('/var/programs', place, 'bind', 'ro')])
  expect(node).toEqual([])
  expect(container.filter(({ destination }) => destination === place).map(({ source }) => source)).toEqual([place, '/var/programs'])
})

describe('mounts on the node', () => {
  /** Each call to the kernel as a line; what is mounted, as it is seen. */
  function node() {
    const calls: string[] = []
    const mounted: string[] = []
    const mount = {
      mountFlags,
      mount({ source, target, type = '', flags = [], data = '' }: Parameters<NodeMounts['kernel']['mount']['mount']>[0]) {
        calls.push(`mount ${source} ${target} ${[type, ...flags, data].filter(Boolean).join(',')}`)
        mounted.push(target)
      },
      remount: (target: string, flags: readonly string[]) => void calls.push(`remount ${target} ${flags.join(',')}`),
      propagate: (target: string, how: string) => void calls.push(`propagate ${target} ${how}`),
      umount(target: string) {
        calls.push(`umount ${target}`)
        mounted.splice(mounted.lastIndexOf(target), 1)
      },
      mountAt: (path: string) => (mounted.includes(path) ? ({ target: path } as never) : undefined),
    }
    const files = { exists: () => true, stat: () => ({ isDirectory: () => true }) as never, mkdirAll() {}, append() {} }
    const mounts = new NodeMounts({ mount, files })
    const provide = (...wanted: NodeMount[]) => {
      mounts.provide(wanted)
      return calls.splice(0)
    }
    return { mounted, provide }
  }
  const data = { source: '/var/data', target: '/var/mnt/data', type: 'bind', options: ['rbind', 'rshared', 'ro', 'noexec'] }
  const memory = { source: 'tmpfs', target: '/run/scratch', type: 'tmpfs', options: ['nosuid', 'size=1m', 'mode=700'] }
  const plain = { source: '/var/a', target: '/var/mnt/a', type: 'bind', options: ['rw'] }

  test('are made once, however often they are requested', () => {
    const { provide } = node()
    expect(provide(data, memory)).toEqual([
      'mount /var/data /var/mnt/data bind,rec',
      'remount /var/mnt/data bind,ro,noexec',
      'propagate /var/mnt/data rshared',
      'mount tmpfs /run/scratch tmpfs,nosuid,size=1m,mode=700',
    ])
    expect(provide(data, memory)).toEqual([])
  })

  test('are taken away from the first that changed on', () => {
    const { provide, mounted } = node()
    provide(plain, data, memory)
    expect(provide(plain, memory)).toEqual([
      'umount /run/scratch',
      'umount /var/mnt/data',
      'mount tmpfs /run/scratch tmpfs,nosuid,size=1m,mode=700',
    ])
    expect(mounted).toEqual(['/var/mnt/a', '/run/scratch'])
    expect(provide()).toEqual(['umount /run/scratch', 'umount /var/mnt/a'])
  })

  test('that somebody else has unmounted are not unmounted once more', () => {
    const { provide, mounted } = node()
    provide(plain)
    mounted.pop()
    expect(provide()).toEqual([])
  })

  test('with an option that no bind has are refused with its name', () => {
    const { provide } = node()
    expect(() => provide({ ...plain, options: ['rbind', 'constructor'] })).toThrow('a bind has no option "constructor"')
    expect(() => provide({ ...plain, options: ['rbind', 'size=1m'] })).toThrow(
      'machine.kubelet.extraMounts: a bind has no option "size=1m"',
    )
  })
})
