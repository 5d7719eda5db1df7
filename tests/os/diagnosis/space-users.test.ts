import { expect, test } from 'bun:test'
import { spaceUsers } from '../../../src/os/diagnosis/space-users.ts'

const mebibyte = 1 << 20

/** Files by path, with their sizes in bytes; folders follow from them. */
function disk(sizes: Record<string, number>) {
  const paths = Object.keys(sizes)
  const below = (folder: string) => paths.filter((path) => path.startsWith(`${folder}/`))
  return {
    exists: (path: string) => path in sizes || below(path).length > 0,
    list: (folder: string) => [...new Set(below(folder).map((path) => path.slice(folder.length + 1).split('/')[0]!))],
    async *walk(folder: string) {
      for (const path of [...below(folder), ...(folder in sizes ? [folder] : [])])
        yield { path, relative: '', depth: 0, stats: { blocks: Math.ceil(sizes[path]! / 512) } as never }
    },
  }
}

test('who takes the space is named, pods with their volumes and logs, the largest first', async () => {
  const users = await spaceUsers(
    disk({
      '/var/lib/kubelet/pods/u1/volumes/kubernetes.io~empty-dir/data/big': 900 * mebibyte,
      '/var/log/pods/shop_cart_u1/web/0.log': 100 * mebibyte,
      '/var/log/pods/shop_idle_u2/web/0.log': 10,
      '/var/lib/containerd/content': 300 * mebibyte,
      '/var/lib/etcd/member/snap/db': 40 * mebibyte,
      '/var/log/kubelet.log': 5 * mebibyte,
    }),
  )
  expect(users).toBe(
    'most of it is of pod shop/cart (1000 MiB), images and the files of containers (300 MiB), etcd (40 MiB), logs of the system (5 MiB)',
  )
})

test('an empty disk names nobody, and of very many files only the first are counted', async () => {
  expect(await spaceUsers(disk({}))).toBeUndefined()
  const many = Object.fromEntries(Array.from({ length: 50_001 }, (_, at) => [`/var/lib/etcd/${at}`, 4096]))
  expect(await spaceUsers(disk(many))).toBe('of the first 50000 files, most are of etcd (196 MiB)')
})
