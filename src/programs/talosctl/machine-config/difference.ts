/** The lines by which two configurations differ in meaning; secrets are masked. */
export async function differenceOf(before: string, after: string): Promise<string> {
  const [{ parseConfig }, { changesBetween }, { changeText }] = await Promise.all([
    import('../../../os/config/parse.ts'),
    import('../../../os/config/history/changes.ts'),
    import('../../../os/config/history/change-text.ts'),
  ])
  return changeText(changesBetween(parseConfig(before), parseConfig(after)))
}
