import { expect, test } from 'bun:test'
import { kubernetesVersion } from '../../../../../src/os/k8s/images.ts'
import { checkKubernetesVersion } from '../../../../../src/programs/talosctl/cluster/plan/kubernetes-version.ts'

const minor = Number(kubernetesVersion.split('.')[1])
const never = async () => false
const always = async () => true

test('the version inside needs nobody', async () => {
  await checkKubernetesVersion(kubernetesVersion, [], never)
})

test('another version is taken when its registries, or mirrors of them, can be reached', async () => {
  await checkKubernetesVersion(`1.${minor - 1}.0`, [], always)
  await expect(checkKubernetesVersion(`1.${minor - 1}.0`, [], never)).rejects.toThrow(`use ${kubernetesVersion}, which is inside`)
  const hosts: string[] = []
  await checkKubernetesVersion(`1.${minor - 1}.0`, [], async (host) => hosts.push(host) > 0)
  await checkKubernetesVersion(`1.${minor - 1}.0`, hosts, never)
})

test.each(['latest', '1.36', `1.${minor + 1}.0`, `1.${minor - 6}.9`, '2.0.0'])('%s is refused with what is supported', async (version) => {
  await expect(checkKubernetesVersion(version, [], always)).rejects.toThrow(`--kubernetes-version "${version}"`)
})
