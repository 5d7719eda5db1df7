import { expect, test } from 'bun:test'
import { ExtraManifestsConfig } from '../../../../src/os/k8s/resources/extra-manifests-config.ts'

test('readers see which extra manifests there are, not the credentials of their headers nor what stands in them', () => {
  const manifest = (name: string, extraHeaders: Record<string, string>, inlineManifest: string) => ({
    ...{ name, url: inlineManifest ? '' : `https://files.test/${name}`, priority: '99' },
    ...{ extraHeaders, inlineManifest },
  })
  const spec = {
    extraManifests: [
      manifest('remote', { Authorization: 'Bearer s3cret', 'X-Token': 's3cret' }, ''),
      manifest('inline', {}, 'kind: Secret\nstringData: {password: s3cret}\n'),
    ],
  }
  const seen = ExtraManifestsConfig.redacted!(spec)
  expect(JSON.stringify(seen)).not.toContain('s3cret')
  expect(seen.extraManifests.map(({ name, url, extraHeaders }) => [name, url, Object.keys(extraHeaders)])).toEqual([
    ['remote', 'https://files.test/remote', ['Authorization', 'X-Token']],
    ['inline', '', []],
  ])
  expect(seen.extraManifests.map(({ inlineManifest }) => inlineManifest)).toEqual(['', '# only os:admin may read this\n'])
})
