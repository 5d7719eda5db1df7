import { expect, test } from 'bun:test'
import { parseS3Error, parseS3Page } from '../../../src/wire/s3/listing.ts'
import { sha256, signed } from '../../../src/wire/s3/signature.ts'

// The examples of "Authenticating Requests (AWS Signature Version 4)" in the API reference of Amazon S3.
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
}
const example = { host: 'examplebucket.s3.amazonaws.com', time: new Date('2013-05-24T00:00:00Z'), bodyHash: sha256('') }
const signatureOf = ({ headers }: ReturnType<typeof signed>) => /Signature=(\w+)/.exec(headers.authorization ?? '')?.[1]

test('requests are signed as the reference signs them', () => {
  const get = signed({ ...example, method: 'GET', path: '/test.txt', headers: { range: 'bytes=0-9' } }, credentials)
  expect(signatureOf(get)).toBe('f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
  const list = signed({ ...example, method: 'GET', path: '/', query: { prefix: 'J', 'max-keys': '2' } }, credentials)
  expect(signatureOf(list)).toBe('34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7')
  expect(list.target).toBe('/?max-keys=2&prefix=J')
  const put = signed(
    {
      ...example,
      method: 'PUT',
      path: '/test$file.text',
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      bodyHash: sha256('Welcome to Amazon S3.'),
    },
    credentials,
  )
  expect(signatureOf(put)).toBe('98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd')
  expect(put.target).toBe('/test%24file.text')
  expect(JSON.stringify(put)).not.toContain('wJalr')
})

test('a page of a list is read, and an error', () => {
  const object = (key: string, size: string) => `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`
  const page = `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>${object('x%2Fy', '5')}${object('z', 'many')}</ListBucketResult>`
  expect(parseS3Page(page)).toEqual({ objects: [{ key: 'x/y', size: 5 }], next: 'a&b' })
  expect(parseS3Page('no XML')).toEqual({ objects: [], next: undefined })
  expect(parseS3Error('<Error><Code>AccessDenied</Code><Message>No\nentry</Message></Error>')).toBe('AccessDenied: No entry')
  expect(parseS3Error('')).toBeUndefined()
})
