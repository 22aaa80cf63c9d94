package city

import "strings"

// Other is the category of what fits nowhere else.
const Other = "Other"

// words lead from what 311 logs call a thing to the category that it has
// here. The first that occurs decides.
var words = []struct{ word, category string }{
	{"streetlight", "Street lights and signals"},
	{"signal", "Street lights and signals"},
	{"graffiti", "Graffiti"},
	{"dumping", "Waste and illegal dumping"},
	{"bulky", "Waste and illegal dumping"},
	{"appliance", "Waste and illegal dumping"},
	{"waste", "Waste and illegal dumping"},
	{"animal", "Animals"},
	{"water", "Water and drainage"},
	{"pothole", "Roads and potholes"},
	{"sidewalk", "Sidewalks"},
	{"tree", "Parks and trees"},
	{"parking", "Traffic and parking"},
	{"encampment", "Public safety and noise"},
}

func categoryOf(name string) string {
	name = strings.ToLower(name)
	if strings.Contains(name, "water waste") {
		return "Water and drainage" // water that is wasted, not waste
	}
	for _, w := range words {
		if strings.Contains(name, w.word) {
			return w.category
		}
	}
	return Other
}
