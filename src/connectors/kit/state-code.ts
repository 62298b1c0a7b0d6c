/** Names of states and provinces that providers accept only by their two letters, by country and code. */
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  US: {
    ...{ AL: 'Alabama', AK: 'Alaska', AZ: 'Arizona', AR: 'Arkansas', CA: 'California', CO: 'Colorado' },
    ...{ CT: 'Connecticut', DE: 'Delaware', DC: 'District of Columbia|Washington DC', FL: 'Florida' },
    ...{ GA: 'Georgia', HI: 'Hawaii', ID: 'Idaho', IL: 'Illinois', IN: 'Indiana', IA: 'Iowa', KS: 'Kansas' },
    ...{ KY: 'Kentucky', LA: 'Louisiana', ME: 'Maine', MD: 'Maryland', MA: 'Massachusetts', MI: 'Michigan' },
    ...{ MN: 'Minnesota', MS: 'Mississippi', MO: 'Missouri', MT: 'Montana', NE: 'Nebraska', NV: 'Nevada' },
    ...{ NH: 'New Hampshire', NJ: 'New Jersey', NM: 'New Mexico', NY: 'New York', NC: 'North Carolina' },
    ...{ ND: 'North Dakota', OH: 'Ohio', OK: 'Oklahoma', OR: 'Oregon', PA: 'Pennsylvania' },
    ...{ RI: 'Rhode Island', SC: 'South Carolina', SD: 'South Dakota', TN: 'Tennessee', TX: 'Texas' },
    ...{ UT: 'Utah', VT: 'Vermont', VA: 'Virginia', WA: 'Washington', WV: 'West Virginia', WI: 'Wisconsin' },
    ...{ WY: 'Wyoming', AS: 'American Samoa', GU: 'Guam', MP: 'Northern Mariana Islands' },
    ...{ PR: 'Puerto Rico', VI: 'US Virgin Islands|Virgin Islands', UM: 'US Minor Outlying Islands' },
    ...{ AA: 'Armed Forces Americas', AE: 'Armed Forces Europe', AP: 'Armed Forces Pacific' },
  },
  CA: {
    ...{ AB: 'Alberta', BC: 'British Columbia|Colombie-Britannique', MB: 'Manitoba' },
    ...{ NB: 'New Brunswick|Nouveau-Brunswick', NL: 'Newfoundland and Labrador|Terre-Neuve-et-Labrador' },
    ...{ NS: 'Nova Scotia|Nouvelle-Écosse', NT: 'Northwest Territories|Territoires du Nord-Ouest' },
    ...{ NU: 'Nunavut', ON: 'Ontario', PE: 'Prince Edward Island|Île-du-Prince-Édouard' },
    ...{ QC: 'Québec', SK: 'Saskatchewan', YT: 'Yukon|Yukon Territory' },
  },
};

/** Returns a name without case, accents, spaces and punctuation. */
function plain(name: string): string {
  return name
    .normalize('NFD')
    .replace(/[^A-Za-z]/g, '')
    .toUpperCase();
}

const CODES: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries(NAMES).map(([country, names]) => [
    country,
    new Map(
      Object.entries(names).flatMap(([code, alternatives]) =>
        [code, `${country}${code}`, ...alternatives.split('|')].map((name) => [plain(name), code] as const),
      ),
    ),
  ]),
);

/** Returns true if a country's states are known here. @param country ISO 3166-1 alpha-2. */
export function hasStateCodes(country: string): boolean {
  return CODES.has(country);
}

/**
 * Returns the two letters of a state or province in the United States or Canada, given its name or its code (California,
 * ca, US-CA); undefined if it is neither, or the country is another.
 */
export function stateCodeOf(state: string, country: string): string | undefined {
  return CODES.get(country)?.get(plain(state));
}
